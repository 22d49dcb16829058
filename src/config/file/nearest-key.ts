/** The known key that is most like an unknown one; null when none is like it. */
export function nearestKey(unknown: string, known: string[]): string | null {
  const distances = known.map((key) => ({
    key,
    distance: editDistance(unknown.toLowerCase(), key.toLowerCase()),
  }));
  const nearest = distances.sort((a, b) => a.distance - b.distance)[0];
  if (nearest === undefined) return null;
  return nearest.distance <= Math.max(1, Math.floor(nearest.key.length / 2)) ? nearest.key : null;
}

/** How many characters must be put in, taken out or replaced to make one text of the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (character === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
