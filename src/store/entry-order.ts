/** Orders places in the log, `<ms>-<count>`, oldest first. */
export function compareEntries(one: string, other: string): number {
  const [ms = 0, count = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherCount = 0] = other.split('-').map(Number);
  return ms - otherMs || count - otherCount;
}
