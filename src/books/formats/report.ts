import type { BookAmount, BooksReport, ReportRow } from '../../domain/books/report-schema.ts';
import { groupUnits } from '../../domain/transfers/money.ts';
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

const MOST_COLUMNS = 13;

/** Style that puts its heading before each cell; a table has the headings as `--c1`, `--c2` and so on. */
const headings = (tables: string): string =>
  Array.from(
    { length: MOST_COLUMNS },
    (_, at) => `${tables} td:nth-child(${at + 1})::before { content: var(--c${at + 1}); }`,
  ).join(' ');

/** Style for a table that is wider than the window: a row is a block of cells below their headings, and no figure is cut. */
const stacked = (tables: string): string => `
${tables} { display: block; } ${tables} tbody { display: block; } ${tables} thead { display: none; }
${tables} tr { display: flex; flex-wrap: wrap; gap: 6px 20px; padding: 8px 0; border-bottom: 1px solid var(--line); }
${tables} :is(td, .number) { padding: 0; border: 0; text-align: left; max-width: 100%; overflow-wrap: anywhere; } ${tables} td:empty { display: none; }
${tables} td::before { display: block; color: var(--soft); font-size: 11px; }
`;

const STYLE = `
:root { color-scheme: light dark; --line: #d5d9de; --soft: #5b6570; --bad: #b3261e; --good: #1b6e3c; --head: #f3f5f7; }
@media (prefers-color-scheme: dark) { :root { --line: #3a424b; --soft: #a2acb7; --bad: #ff8a80; --good: #7fd6a0; --head: #20262d; } }
body { font: 14px/1.45 system-ui, sans-serif; margin: 24px; }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 24px 0 6px; }
p { margin: 4px 0; overflow-wrap: anywhere; } .soft { color: var(--soft); } .bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; } th, td { text-align: left; padding: 4px 10px 4px 4px; vertical-align: top; border-bottom: 1px solid var(--line); }
th { background: var(--head); white-space: nowrap; } .number { text-align: right; font-variant-numeric: tabular-nums; }
td.number, code, time { white-space: nowrap; } .text { overflow-wrap: anywhere; } code { font-size: 12px; }
@media screen and (min-width: 1850px) { .many { font-size: 12px; } .many .text { min-width: 12em; } }
@media screen and (max-width: 1849.98px) { ${stacked('.many')} ${headings('.many')} }
@media screen and (max-width: 700px) { body { margin: 12px; } ${stacked('table')} ${headings('table')} td.number { white-space: normal; } }
@media print {
  @page { size: A4 landscape; margin: 8mm; }
  :root { color-scheme: light; --line: #c4c9cf; --soft: #4a535c; --bad: #b3261e; --good: #1b6e3c; --head: #f3f5f7; }
  body { margin: 0; font-size: 9px; line-height: 1.25; } h1 { font-size: 14px; } h2 { font-size: 11px; margin: 10px 0 3px; break-after: avoid; }
  .wide { overflow: visible; } table { font-size: 7px; line-height: 1.15; } code { font-size: 6.5px; } th, td { padding: 1px 5px 1px 2px; }
  thead { display: table-header-group; } tr { break-inside: avoid; }
}
`;

/** Yields a report as one HTML file without external parts, a row at a time. */
export function* reportHtml(report: BooksReport): Generator<string> {
  const { balances, delivered, refunded, fees, routes, checks, exceptions, transfers, notes, from, to } =
    report;
  const title = titleOf(report);
  yield `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title><style>${STYLE}</style></head><body>
<h1>${escaped(title)}</h1>
<p class="soft">${time(from)} to ${time(to)}, made at ${time(report.madeAt)}</p>
${checks.map(({ ok, text }) => `<p class="${ok ? 'good' : 'bad'}">${ok ? 'ok' : 'WRONG'}: ${escaped(text)}</p>`).join('\n')}
`;
  yield* section('Under way, per source token', BALANCE_COLUMNS, balances, (balance) => [
    escaped(nameOf(balance)),
    ...(['opening', 'started', 'ended', 'closing'] as const).map(
      (name) => `${shown(balance[name])} <span class="soft">(${balance[name].count})</span>`,
    ),
  ]);
  yield* section(
    `Exceptions (${exceptions.length})`,
    EXCEPTION_COLUMNS,
    exceptions,
    ({ kind, subject, text }) => [`<span class="bad">${kind}</span>`, code(subject), escaped(text)],
  );
  yield* sums('Delivered', delivered);
  yield* sums('Paid back', refunded);
  yield* sums('Fees of the quotes', fees);
  yield* section('Routes', ROUTE_COLUMNS, routes, (sum) => [
    escaped(sum.source || '?'),
    escaped(sum.destination || '?'),
    sum.side,
    escaped(nameOf(sum)),
    shown(sum),
    String(sum.count),
  ]);
  yield* section(count(transfers.length, 'transfer'), TRANSFER_COLUMNS, transfers, transferCells);
  yield `${notes.map((note) => `<p class="soft">${escaped(note)}</p>`).join('\n')}
</body></html>
`;
}

/** A column with its heading and class: numbers are right-aligned and unbroken; texts break anywhere. */
type Column = { title: string; kind: 'plain' | 'number' | 'text' };

const plain = (title: string): Column => ({ title, kind: 'plain' });
const number = (title: string): Column => ({ title, kind: 'number' });
const text = (title: string): Column => ({ title, kind: 'text' });

const BALANCE_COLUMNS: readonly Column[] = [
  plain('Token'),
  number('Opening'),
  number('Started'),
  number('Ended'),
  number('Closing'),
];

const EXCEPTION_COLUMNS: readonly Column[] = [plain('Why'), plain('Transfer'), text('What')];

const SUM_COLUMNS: readonly Column[] = [plain('Token'), number('Amount'), number('Transfers')];

const ROUTE_COLUMNS: readonly Column[] = [plain('From'), plain('To'), plain('Side'), ...SUM_COLUMNS];

const TRANSFER_COLUMNS: readonly Column[] = [
  plain('Transfer'),
  plain('Status'),
  plain('Funded'),
  plain('Ended'),
  number('Seconds'),
  plain('Route'),
  number('Sent'),
  number('Promised'),
  number('Delivered'),
  number('Fees'),
  plain('Proof'),
  text('Reported'),
  text('For'),
];

function transferCells(row: ReportRow): string[] {
  const hashes = [row.sourceTx, row.destinationTx, row.refundTx].filter((hash) => hash !== null);
  const marks = [
    ...(row.carried ? ['carried'] : []),
    ...(row.late ? ['late'] : []),
    ...(row.corrections > 0 ? [count(row.corrections, 'correction')] : []),
  ];
  const metadata = Object.entries(row.metadata).map(([key, value]) => `${key}=${value}`);
  return [
    `${code(row.subject)}${hashes.map((hash) => `<br>${code(hash)}`).join('')}`,
    `${escaped(row.status)}${marks.map((mark) => `<br><span class="soft">${mark}</span>`).join('')}`,
    row.fundedAt === null ? '' : time(row.fundedAt),
    row.endedAt === null ? '' : time(row.endedAt),
    row.fillSeconds === null ? '' : String(row.fillSeconds),
    escaped(`${row.source ?? '?'} to ${row.destination ?? '?'}`),
    `${money(row.sent)}${row.isSentSeen || row.sent === null ? '' : '<br><span class="soft">agreed</span>'}`,
    money(row.promised),
    money(row.delivered),
    row.fees.map(money).join('<br>'),
    `<span class="${row.proof === 'disputed' || row.proof === 'unproven' ? 'bad' : ''}">${row.proof}</span>${row.proofReason === null ? '' : `<br>${escaped(row.proofReason)}`}`,
    row.reported
      .map(({ receiver, state, at }) => `${escaped(receiver)} ${at === null ? escaped(state) : time(at)}`)
      .join('<br>'),
    [...[...row.subscriptions, ...metadata].map(escaped), ...row.wallets.map(code)].join('<br>'),
  ];
}

function sums(title: string, list: BooksReport['delivered']): Generator<string> {
  return section(title, SUM_COLUMNS, list, (sum) => [escaped(nameOf(sum)), shown(sum), String(sum.count)]);
}

const MOST_NARROW = 6;

function* section<T>(
  title: string,
  columns: readonly Column[],
  list: readonly T[],
  cellsOf: (one: T) => readonly string[],
): Generator<string> {
  if (list.length === 0) return;
  const heads = columns.map(({ title: name, kind }) => `${opening('th', kind)}${name}</th>`).join('');
  const names = columns.map(({ title: name }, at) => `--c${at + 1}: '${name}'`).join('; ');
  const size = columns.length > MOST_NARROW ? ' class="many"' : '';
  yield `<h2>${escaped(title)}</h2><div class="wide"><table${size} style="${names}"><thead><tr>${heads}</tr></thead><tbody>\n`;
  const tags = columns.map(({ kind }) => opening('td', kind));
  for (const one of list) {
    const cells = cellsOf(one).map((cell, at) => `${tags[at]}${cell}</td>`);
    yield `<tr>${cells.join('')}</tr>\n`;
  }
  yield '</tbody></table></div>\n';
}

function opening(tag: 'th' | 'td', kind: Column['kind']): string {
  return kind === 'plain' ? `<${tag}>` : `<${tag} class="${kind}">`;
}

type NamedToken = { symbol: string | null; token: string; chain: string | null; chainId: string };

function nameOf({ symbol, token, chain, chainId }: NamedToken): string {
  return `${symbol ?? (token || 'unknown token')} on ${chain ?? (chainId || 'an unknown chain')}`;
}

function money(amount: BookAmount | null): string {
  return amount === null ? '' : `${shown(amount)} ${escaped(amount.symbol ?? '')}`;
}

function shown({ units, amount }: { units: string | null; amount: string }): string {
  if (units === null) return `${escaped(amount)} base units`;
  return units.startsWith('-') ? `-${groupUnits(units.slice(1))}` : groupUnits(units);
}

function code(text: string): string {
  return `<code title="${escaped(text)}">${escaped(text.length > 24 ? `${text.slice(0, 14)}…${text.slice(-6)}` : text)}</code>`;
}

function time(iso: string): string {
  return `<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')}Z</time>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (found) => ENTITIES[found] ?? '');
}
