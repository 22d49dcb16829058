/** Cuts a list into parts of at most `size`, since a command takes a limited number of values. */
export function chunks<T>(list: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let index = 0; index < list.length; index += size) parts.push(list.slice(index, index + size));
  return parts;
}
