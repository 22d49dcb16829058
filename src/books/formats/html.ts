import type { BookAmount, Report, ReportRow } from '../../domain/books/report-schema.ts';
import { groupUnits } from '../../domain/transfers/amounts.ts';
import { count, titleOf } from './text.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #d5d9de; --soft: #5b6570; --bad: #b3261e; --good: #1b6e3c; --head: #f3f5f7; }
@media (prefers-color-scheme: dark) { :root { --line: #3a424b; --soft: #a2acb7; --bad: #ff8a80; --good: #7fd6a0; --head: #20262d; } }
body { font: 14px/1.45 system-ui, sans-serif; margin: 24px; }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 24px 0 6px; }
p { margin: 4px 0; } .soft { color: var(--soft); } .bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; } th, td { text-align: left; padding: 4px 10px 4px 0; vertical-align: top; border-bottom: 1px solid var(--line); }
th, td { padding-left: 4px; white-space: nowrap; } th { background: var(--head); } .number { text-align: right; font-variant-numeric: tabular-nums; }
.text { white-space: normal; overflow-wrap: anywhere; min-width: 14em; } code { font-size: 12px; }
@media print { body { margin: 0; font-size: 10px; } table { font-size: 9px; } tr { break-inside: avoid; } thead { display: table-header-group; } @page { size: A4 landscape; margin: 12mm; } .wide { overflow: visible; } td { white-space: normal; } code { overflow-wrap: anywhere; } .text { min-width: 0; } }
`;

/** A report as one HTML file, without anything from elsewhere; a row at a time. */
export function* reportHtml(report: Report): Generator<string> {
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

/** A column by its heading and its class: numbers stand at the right, and only texts are broken into lines. */
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
  plain('Told'),
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
    row.told
      .map(({ receiver, state, at }) => `${escaped(receiver)} ${at === null ? escaped(state) : time(at)}`)
      .join('<br>'),
    [...row.subscriptions, ...metadata, ...row.wallets].map((text) => escaped(text)).join('<br>'),
  ];
}

function sums(title: string, list: Report['delivered']): Generator<string> {
  return section(title, SUM_COLUMNS, list, (sum) => [escaped(nameOf(sum)), shown(sum), String(sum.count)]);
}

/** A table under a heading; nothing where it would be empty. */
function* section<T>(
  title: string,
  columns: readonly Column[],
  list: readonly T[],
  cellsOf: (one: T) => readonly string[],
): Generator<string> {
  if (list.length === 0) return;
  const heads = columns.map(({ title: name, kind }) => `${opening('th', kind)}${name}</th>`).join('');
  yield `<h2>${escaped(title)}</h2><div class="wide"><table><thead><tr>${heads}</tr></thead><tbody>\n`;
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

function nameOf({
  symbol,
  token,
  chain,
  chainId,
}: Pick<BookAmount, 'symbol' | 'token' | 'chain' | 'chainId'>): string {
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
