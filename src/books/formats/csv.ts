import type { BookAmount, BookSum, BooksReport, ReportRow } from '../../domain/books/report-schema.ts';

/** The beginning of a formula, also in full-width characters, which some spreadsheets treat alike. */
const FORMULA = /^\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/;

/** Formats a cell of RFC 4180. An apostrophe precedes text that a spreadsheet would run as a formula. */
function cell(value: string | number | boolean | null): string {
  if (typeof value !== 'string') return value === null ? '' : String(value);
  const isNumber = /^-?\d+(\.\d+)?$/.test(value);
  const safe = !isNumber && FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

type Cells = readonly (string | number | boolean | null)[];

/** Yields the lines. The byte order mark makes spreadsheets read them as UTF-8. */
function* lines(columns: Cells, rows: Iterable<Cells>): Generator<string> {
  yield `\uFEFF${line(columns)}`;
  for (const row of rows) yield line(row);
}

function line(cells: Cells): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

const amountColumns = (name: string): string[] => [
  name,
  `${name}_base_units`,
  `${name}_token`,
  `${name}_token_address`,
];

function amountCells(amount: BookAmount | null): (string | null)[] {
  return [amount?.units ?? null, amount?.amount ?? null, amount?.symbol ?? null, amount?.token ?? null];
}

const TRANSFER_COLUMNS = [
  'subject',
  'status',
  'phase',
  'funded_at',
  'ended_at',
  'fill_seconds',
  'source',
  'destination',
  ...amountColumns('sent'),
  'sent_was_seen',
  ...amountColumns('promised'),
  ...amountColumns('delivered'),
  'fees',
  'source_tx',
  'destination_tx',
  'refund_tx',
  'proof',
  'proof_reason',
  'reported',
  'wallets',
  'subscriptions',
  'metadata',
  'carried',
  'late',
  'corrections',
  'exceptions',
];

/** Yields the transfers in a daily report of the books (docs/books.md) as CSV, one row each. */
export function transfersCsv({ transfers, exceptions }: BooksReport): Generator<string> {
  const exceptionsOf = Map.groupBy(exceptions, ({ subject }) => subject);
  const rows = Iterator.from(transfers).map((row) => [
    ...transferCells(row),
    (exceptionsOf.get(row.subject) ?? []).map(({ kind, text }) => `${kind}: ${text}`).join('; '),
  ]);
  return lines(TRANSFER_COLUMNS, rows);
}

function transferCells(row: ReportRow): Cells {
  return [
    row.subject,
    row.status,
    row.phase,
    row.fundedAt,
    row.endedAt,
    row.fillSeconds,
    row.source,
    row.destination,
    ...amountCells(row.sent),
    row.isSentSeen,
    ...amountCells(row.promised),
    ...amountCells(row.delivered),
    row.fees.map((fee) => `${fee.units ?? `${fee.amount} base units`} ${fee.symbol ?? fee.token}`).join('; '),
    row.sourceTx,
    row.destinationTx,
    row.refundTx,
    row.proof,
    row.proofReason,
    row.reported.map(({ receiver, state, at }) => `${receiver} ${at ?? state}`).join('; '),
    row.wallets.join(' '),
    row.subscriptions.join(' '),
    Object.entries(row.metadata)
      .map(([key, value]) => `${key}=${value}`)
      .join('; '),
    row.carried,
    row.late,
    row.corrections,
  ];
}

const SUM_COLUMNS = [
  'sum',
  'from',
  'to',
  'chain',
  'token',
  'token_address',
  'count',
  'amount',
  'amount_base_units',
];

/** Yields the balances and sums in a daily report of the books as CSV, one row each. */
export function sumsCsv({ balances, delivered, refunded, fees, routes }: BooksReport): Generator<string> {
  const sumCells = (name: string, sum: BookSum, route: readonly [string, string] = ['', '']) => [
    name,
    ...route,
    sum.chain ?? sum.chainId,
    sum.symbol,
    sum.token,
    sum.count,
    sum.units,
    sum.amount,
  ];
  const rows = [
    ...balances.flatMap((balance) =>
      (['opening', 'started', 'ended', 'closing'] as const).map((name) => [
        name,
        '',
        '',
        balance.chain ?? balance.chainId,
        balance.symbol,
        balance.token,
        balance[name].count,
        balance[name].units,
        balance[name].amount,
      ]),
    ),
    ...delivered.map((sum) => sumCells('delivered', sum)),
    ...refunded.map((sum) => sumCells('refunded', sum)),
    ...fees.map((sum) => sumCells('fees', sum)),
    ...routes.map((sum) => sumCells(`route ${sum.side}`, sum, [sum.source, sum.destination])),
  ];
  return lines(SUM_COLUMNS, rows);
}
