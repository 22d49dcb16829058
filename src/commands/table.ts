import { printableLine } from '../notifiers/printable.ts';

/** Rows of text as aligned columns, one line a row. What stands in a cell is made printable: it comes from outside. */
export function table(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => printableLine(cell, 200)));
  const columns = Math.max(0, ...cells.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, at) =>
    Math.max(...cells.map((row) => row[at]?.length ?? 0)),
  );
  return cells
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Unix seconds as a UTC time. Seconds beyond the calendar stay a number. */
export function utcTime(seconds: number): string {
  const date = new Date(seconds * 1_000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString().replace('.000Z', 'Z');
}

/** Milliseconds since 1970 as a UTC time to the second. */
export function utcTimeOfMs(ms: number): string {
  return utcTime(Math.floor(ms / 1_000));
}
