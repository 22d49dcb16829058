/** Number of insertions, removals and replacements of characters that turn one text into the other. */
export function editDistance(from: string, to: string): number {
  return distanceOf([...from], [...to]);
}

/** Edit distance to the nearest text that a glob matches; each `*` matches any run of characters. */
export function globDistance(glob: string, text: string): number {
  const parts = [...glob].map((character) => (character === '*' ? null : character));
  return distanceOf(parts, [...text]);
}

/** `null` in `from` matches any run of characters. */
function distanceOf(from: readonly (string | null)[], to: readonly string[]): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const character of from) {
    const next = [(row[0] ?? 0) + (character === null ? 0 : 1)];
    for (const [column, other] of to.entries()) {
      const [above, left, diagonal] = [row[column + 1] ?? 0, next[column] ?? 0, row[column] ?? 0];
      if (character === null) next.push(Math.min(above, left));
      else next.push(Math.min(diagonal + (character === other ? 0 : 1), above + 1, left + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
