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
th { background: var(--head); padding-left: 4px; white-space: nowrap; } td { padding-left: 4px; } .num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font-size: 12px; overflow-wrap: anywhere; } .id { max-width: 13em; } time { white-space: nowrap; }
@media print { body { margin: 0; font-size: 10px; } table { font-size: 9px; } tr { break-inside: avoid; } thead { display: table-header-group; } @page { size: A4 landscape; margin: 12mm; } .wide { overflow: visible; } }
`;

/** A report as one HTML file, without anything from elsewhere. */
export function reportHtml(report: Report): string {
  const { balances, delivered, refunded, fees, routes, checks, exceptions, transfers, notes, from, to } =
    report;
  const title = titleOf(report);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title><style>${STYLE}</style></head><body>
<h1>${escaped(title)}</h1>
<p class="soft">${time(from)} to ${time(to)}, made at ${time(report.madeAt)}</p>
${checks.map(({ ok, text }) => `<p class="${ok ? 'good' : 'bad'}">${ok ? 'ok' : 'WRONG'}: ${escaped(text)}</p>`).join('\n')}
${section(
  'Under way, per source token',
  ['Token', 'Opening', 'Started', 'Ended', 'Closing'],
  balances.map((balance) => [
    escaped(nameOf(balance)),
    ...(['opening', 'started', 'ended', 'closing'] as const).map((name) => ({
      number: `${shown(balance[name])} <span class="soft">(${balance[name].count})</span>`,
    })),
  ]),
)}
${section(
  `Exceptions (${exceptions.length})`,
  ['Why', 'Transfer', 'What'],
  exceptions.map(({ kind, subject, text }) => [
    `<span class="bad">${kind}</span>`,
    code(subject),
    escaped(text),
  ]),
)}
${sums('Delivered', delivered)}
${sums('Paid back', refunded)}
${sums('Fees of the quotes', fees)}
${section(
  'Routes',
  ['From', 'To', 'Side', 'Token', 'Amount', 'Transfers'],
  routes.map((sum) => [
    escaped(sum.source),
    escaped(sum.destination),
    sum.side,
    escaped(nameOf(sum)),
    { number: shown(sum) },
    { number: String(sum.count) },
  ]),
)}
${section(
  count(transfers.length, 'transfer'),
  [
    'Transfer',
    'Status',
    'Funded',
    'Ended',
    'Seconds',
    'Route',
    'Sent',
    'Promised',
    'Delivered',
    'Fees',
    'Proof',
    'Told',
    'For',
  ],
  transfers.map(transferCells),
)}
${notes.map((note) => `<p class="soft">${escaped(note)}</p>`).join('\n')}
</body></html>
`;
}

type Cell = string | { number: string };

function transferCells(row: ReportRow): Cell[] {
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
    { number: row.fillSeconds === null ? '' : String(row.fillSeconds) },
    escaped(`${row.source ?? '?'} to ${row.destination ?? '?'}`),
    {
      number: `${money(row.sent)}${row.isSentSeen || row.sent === null ? '' : '<br><span class="soft">agreed</span>'}`,
    },
    { number: money(row.promised) },
    { number: money(row.delivered) },
    { number: row.fees.map(money).join('<br>') },
    `<span class="${row.proof === 'disputed' || row.proof === 'unproven' ? 'bad' : ''}">${row.proof}</span>${row.proofReason === null ? '' : `<br>${escaped(row.proofReason)}`}`,
    row.told
      .map(({ receiver, state, at }) => `${escaped(receiver)} ${at === null ? escaped(state) : time(at)}`)
      .join('<br>'),
    [...row.subscriptions, ...metadata, ...row.wallets].map((text) => escaped(text)).join('<br>'),
  ];
}

function sums(title: string, list: Report['delivered']): string {
  return section(
    title,
    ['Token', 'Amount', 'Transfers'],
    list.map((sum) => [escaped(nameOf(sum)), { number: shown(sum) }, { number: String(sum.count) }]),
  );
}

function section(title: string, head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  if (rows.length === 0) return '';
  const isNumber = head.map((_, at) => rows.every((cells) => typeof cells[at] !== 'string'));
  const body = rows
    .map(
      (cells) =>
        `<tr>${cells.map((one) => (typeof one === 'string' ? `<td>${one}</td>` : `<td class="num">${one.number}</td>`)).join('')}</tr>`,
    )
    .join('\n');
  return `<h2>${escaped(title)}</h2><div class="wide"><table><thead><tr>${head.map((one, at) => `<th${isNumber[at] ? ' class="num"' : ''}>${one}</th>`).join('')}</tr></thead><tbody>
${body}
</tbody></table></div>`;
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
  return `<code class="id" title="${escaped(text)}">${escaped(text.length > 24 ? `${text.slice(0, 14)}…${text.slice(-6)}` : text)}</code>`;
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
