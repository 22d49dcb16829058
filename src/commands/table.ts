import { styleText } from 'node:util';
import { printableLine } from '../notifiers/printable.ts';

/** Target of text: its width (null: no wrapping), and its colours. */
export type Screen = { columns: number | null; colour: (colour: Colour, text: string) => string };

type Colour = 'green' | 'yellow' | 'red' | 'dim' | 'bold';

const PLAIN: Screen = { columns: null, colour: (_colour, text) => text };

/** The terminal that stdout is, or plain text for a pipe; without colour where NO_COLOR is set. */
export function screenOf(stream: NodeJS.WriteStream = process.stdout): Screen {
  return {
    columns: stream.isTTY ? stream.columns : null,
    colour: (colour, text) => styleText(colour, text, { stream }),
  };
}

const LONGEST_CELL = 200;

/**
 * Rows of text as aligned columns, one line a row; the first row has the names. Cells are made printable, as they come from
 * outside. Where a line would not fit the screen, each row is a block of lines.
 */
export function table(rows: readonly (readonly string[])[], screen: Screen = PLAIN): string {
  const cells = rows.map((row) => row.map((cell) => printableLine(cell, LONGEST_CELL)));
  const columns = Math.max(0, ...cells.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, at) =>
    Math.max(...cells.map((row) => row[at]?.length ?? 0)),
  );
  const [head = [], ...rest] = cells;
  const width = widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length);
  if (screen.columns !== null && width > screen.columns && rest.length > 0) return blocks(head, rest, screen);
  const shown = (row: string[], paint: (text: string) => string): string =>
    row
      .map(
        (cell, at) =>
          `${paint(cell)}${' '.repeat(at === row.length - 1 ? 0 : (widths[at] ?? 0) - cell.length)}`,
      )
      .join(GAP)
      .trimEnd();
  return cells
    .map((row, at) => shown(row, (text) => (at === 0 ? screen.colour('bold', text) : tinted(text, screen))))
    .join('\n');
}

const GAP = '  ';

/** A line per cell, for screens that are narrower than the table. */
function blocks(head: string[], rows: string[][], screen: Screen): string {
  const width = Math.max(...head.map((name) => name.length));
  return rows
    .map((row) =>
      head
        .flatMap((name, at) => {
          const cell = row[at] ?? '';
          return cell === ''
            ? []
            : [`${screen.colour('dim', name.padEnd(width))}${GAP}${tinted(cell, screen)}`];
        })
        .join('\n'),
    )
    .join('\n\n');
}

/** Colours a state; leaves any other text as it is. */
export function tinted(text: string, { colour }: Screen): string {
  const [word = ''] = text.split(' ');
  if (['ok', 'delivered', 'filled', 'settled', 'enabled'].includes(word)) return colour('green', text);
  if (['dead', 'failed', 'rejected', 'disabled', 'refunded', 'overdue'].includes(word))
    return colour('red', text);
  if (['retrying', 'failing', 'paused', 'resting', 'enabling', 'pending'].includes(word))
    return colour('yellow', text);
  return text;
}

/** Unix seconds as a UTC time. Seconds beyond the calendar stay a number. */
export function utcTime(seconds: number): string {
  const date = new Date(seconds * 1_000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString().replace('.000Z', 'Z');
}

function utcTimeOfMs(ms: number): string {
  return utcTime(Math.floor(ms / 1_000));
}

/** A time of the API to the second; empty where there is none. */
export function utcTimeOfIso(iso: string | null): string {
  return iso === null ? '' : utcTimeOfMs(Date.parse(iso));
}

/** Time of the next attempt of a delivery, behind `prefix`. One that is due waits until its receiver works again. */
export function nextAttempt(at: string | null, prefix = ''): string {
  if (at !== null && Date.parse(at) <= Date.now()) return 'waits for the receiver';
  return `${prefix}${utcTimeOfIso(at)}`;
}
