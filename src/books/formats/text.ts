import type { BooksReport } from '../../domain/books/report-schema.ts';
import { printableLine } from '../../notifiers/printable.ts';

/** Most exceptions, tokens and sums in a text; the files list all. */
const MOST_LISTED = 50;

/** Returns a report's summary in one line. */
export function titleOf({ day, zone, transfers, exceptions, checks, state }: BooksReport): string {
  const named = new Set(exceptions.map(({ subject }) => subject)).size;
  const isWrong = checks.some(({ ok }) => !ok);
  const open = state === 'open' ? ', not closed' : '';
  const wrong = isWrong ? ', DOES NOT BALANCE' : '';
  return `Books of ${day} (${zone})${open}: ${count(transfers.length, 'transfer')}, ${named === 0 ? 'no exceptions' : `${named} with exceptions`}${wrong}`;
}

/** Longest line: a check names every difference. */
const LONGEST_LINE = 20_000;

/** Formats a report for a mail or a terminal, without the rows. Quoted text adds no lines. */
export function reportText(report: BooksReport): string {
  const { balances, delivered, refunded, fees, checks, exceptions, notes } = report;
  const shown = ({ units, amount }: { units: string | null; amount: string }): string =>
    units ?? `${amount} base units`;
  const nameOf = (place: {
    symbol: string | null;
    token: string;
    chain: string | null;
    chainId: string;
  }): string =>
    printableLine(
      `${place.symbol ?? (place.token || 'unknown token')} on ${place.chain ?? (place.chainId || 'an unknown chain')}`,
    );
  const sums = (title: string, list: BooksReport['delivered']): string[] =>
    list.length === 0
      ? []
      : [
          title,
          ...someOf(list, (sum) => [`  ${nameOf(sum)}: ${shown(sum)} (${count(sum.count, 'transfer')})`]),
          '',
        ];
  const listed = exceptions.slice(0, MOST_LISTED);
  const rest = exceptions.length - listed.length;
  const all = `intentwatch reconcile --day ${report.day} --zone ${report.zone} --format csv`;
  const someOf = <T>(list: readonly T[], lines: (one: T) => string[]): string[] => [
    ...list.slice(0, MOST_LISTED).flatMap(lines),
    ...(list.length > MOST_LISTED ? [`  and ${list.length - MOST_LISTED} more`] : []),
  ];
  return [
    titleOf(report),
    '',
    ...someOf(balances, (balance) => [
      nameOf(balance),
      ...(['opening', 'started', 'ended', 'closing'] as const).map(
        (name) => `  ${name.padEnd(8)} ${shown(balance[name])} (${balance[name].count})`,
      ),
      '',
    ]),
    ...sums('Delivered', delivered),
    ...sums('Paid back', refunded),
    ...sums('Fees of the quotes', fees),
    ...checks.map(({ ok, text }) => printableLine(`${ok ? 'ok' : 'WRONG'}: ${text}`, LONGEST_LINE)),
    '',
    exceptions.length === 0 ? 'No exceptions.' : 'Exceptions',
    ...listed.map(({ kind, subject, text }) => `  ${kind}: ${printableLine(`${subject}: ${text}`)}`),
    ...(rest > 0 ? [`  and ${rest} more: ${all}`] : []),
    '',
    ...notes.map((note) => printableLine(note, LONGEST_LINE)),
  ].join('\n');
}

/** Formats a count: `1 transfer`, `2 transfers`. */
export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
