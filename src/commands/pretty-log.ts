import { prettyFactory } from 'pino-pretty';
import { printableLine } from '../notifiers/printable.ts';

/** No value of a log line is longer. */
const LONGEST = 20_000;

/** Writes log lines for people: one line each, with the time of day and the level in words. */
export function prettyLines(
  sink: { write(text: string): unknown },
  { colour }: { colour: boolean },
): { write(text: string): void } {
  const pretty = prettyFactory({
    colorize: colour,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    errorLikeObjectKeys: ['error'],
  });
  return {
    write: (text) => {
      const lines = text.split('\n').filter((line) => line !== '');
      sink.write(lines.map((line) => pretty(printable(JSON.parse(line)))).join(''));
    },
  };
}

/** What a line quotes from outside, without what would move the cursor of a terminal. */
function printable(value: unknown): unknown {
  if (typeof value === 'string') {
    return value
      .split('\n')
      .map((line) => printableLine(line, LONGEST))
      .join('\n');
  }
  if (Array.isArray(value)) return value.map(printable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [printableLine(name), printable(one)]),
  );
}
