import type { RenderedEvent } from '../../domain/events/event.ts';
import type { TransferFacts } from '../../domain/events/event-schema.ts';
import type { JsonValue } from '../../domain/json.ts';
import type { Proof, ProofReason } from '../../domain/proof/proof.ts';
import { chainName, type Directory } from '../../domain/transfers/chains.ts';
import { describeAmount, groupUnits } from '../../domain/transfers/money.ts';
import { type Leg, readTransfer, type Transfer } from '../../domain/transfers/transfer.ts';
import { printableLine } from '../printable.ts';

/** A fact with its name, and its link. */
export type NoticeRow = { label: string; value: string; url: string | null };

const MAX_VALUE_LENGTH = 500;

/** One row, or none for an empty value. */
export function rowIf(label: string, value: string): NoticeRow[] {
  const line = printableLine(value, MAX_VALUE_LENGTH);
  return line === '' ? [] : [{ label: printableLine(label, 60) || 'unnamed', value: line, url: null }];
}

/** Formats any JSON as a phrase: `chainId 8453, state submitted, quoteIds quote:…`; omits levels deeper than 4. */
export function describeValue(value: JsonValue | undefined, depth = 0): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'object') return String(value);
  if (depth === 4) return '…';
  if (Array.isArray(value)) {
    const separator = value.some((item) => typeof item === 'object') ? '; ' : ', ';
    return value.map((item) => describeValue(item, depth + 1)).join(separator);
  }
  return Object.entries(value)
    .map(([key, member]) => `${key} ${describeValue(member, depth + 1)}`.trim())
    .join(', ');
}

/** Formats a time as `2026-11-20 11:31:00 UTC`; null for an invalid number. */
export function formatTime(timeMs: number): string | null {
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime()) ? null : `${date.toISOString().slice(0, -5).replace('T', ' ')} UTC`;
}

/** Formats Unix seconds, as digits, in the same form; null when the text is no time. */
export function formatUnixSeconds(seconds: string): string | null {
  return /^\d{1,12}$/.test(seconds) ? formatTime(Number(seconds) * 1_000) : null;
}

const UNITS: readonly (readonly [name: string, seconds: number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/** Formats a span in its two greatest units: `23 s`, `15 min`, `2 h 5 min`. */
export function formatDuration(seconds: number): string {
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  if (first === -1) return '0 s';
  let rest = Math.floor(seconds);
  const parts: string[] = [];
  for (const [name, size] of UNITS.slice(first, first + 2)) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)} ${name}`);
    rest %= size;
  }
  return parts.join(' ');
}

const MOST_MOVES = 5;

/** Readers' names for the transaction that a proof is about. */
export const PAYMENT_NAMES = { destination: 'delivery', source: 'funding', refund: 'refund' } as const;

const REASONS: { readonly [reason in ProofReason]: string } = {
  reverted: 'the transaction was reverted',
  'no-transfer': 'the transaction moved none of the token',
  short: 'less was moved than stated',
  'other-recipient': 'it was moved to somebody else',
  'other-intent': 'the payment is that of another transfer',
  'not-tied': 'nothing on the chain ties the payment to this transfer',
};

/** Describes a proof's payment and result in a sentence. */
export function proofSentence({ payment, reason, singleSource }: Proof): string {
  const what = reason === undefined ? '' : `: ${REASONS[reason]}`;
  const source = singleSource === true ? ' Only one endpoint was available.' : '';
  return `It is about the ${PAYMENT_NAMES[payment]}${what}.${source}`;
}

/** Rows for the result of the endpoints about a payment. */
export function proofRows({ data: { proof } }: RenderedEvent, directory: Directory): NoticeRow[] {
  if (proof === undefined) return [];
  const { payment, chainId, txHash, token = null, stated, checked, block, moved = [], endpoints } = proof;
  const chain = chainName(chainId, directory);
  const amountOf = (amount: string, of: string | null): string =>
    describeAmount({ amount, token: of, chainId }, directory);
  const moves = moved
    .slice(0, MOST_MOVES)
    .map((move) => `${amountOf(move.amount, move.token)} to ${move.to}`);
  const more = moved.length > MOST_MOVES ? [`${moved.length - MOST_MOVES} more`] : [];
  return [
    ...rowIf('Payment', `${PAYMENT_NAMES[payment]} on ${chain}: ${txHash}`),
    ...rowIf('Stated', stated === undefined ? '' : amountOf(stated, token)),
    ...rowIf('Moved', [...moves, ...more].join('; ')),
    ...rowIf('Checked', checked.join(', ')),
    ...rowIf('Block', block === undefined ? '' : `${block.number}, ${block.hash}`),
    ...rowIf('Endpoints', endpoints.join(', ')),
  ];
}

const LONGEST_VALUE = 60;

const BASE_UNITS = /^\d{6,}$/;

/** Members of a record that the rows of the promise contain, where they have a value. */
export function promiseMembers({ data: { transfer, record } }: RenderedEvent): string[] {
  const reported = transfer === undefined ? [] : ['funder', 'recipient'].filter((key) => key in transfer);
  return record.type === 'route' ? [...reported, 'minimumOutput', 'fees', 'quote'] : reported;
}

/** The time since the transfer was funded, e.g. `23 s`; empty where that is not known. */
export function sinceFunding({ data: { transfer } }: RenderedEvent): string {
  return transfer?.secondsSinceFunding === undefined ? '' : formatDuration(transfer.secondsSinceFunding);
}

/** Both ends of a transfer from its record, else from its quote's promise. */
export function shownTransfer({ data }: RenderedEvent): Transfer {
  const { source, destination, refund } = readTransfer(data.record);
  const { toSend, promised } = data.transfer ?? {};
  return { source: source ?? legOf(toSend), destination: destination ?? legOf(promised), refund };
}

function legOf(money: TransferAmount | undefined): Leg | null {
  if (money === undefined) return null;
  const { amount: units, token = null, chainId = null } = money;
  return { chainId, token, amount: units, txHash: null, done: false, members: [] };
}

/** Faults of a transfer: its shortfall, and its failed parts. */
export function troubleRows({ data: { transfer } }: RenderedEvent): NoticeRow[] {
  const { shortfall, failed = [] } = transfer ?? {};
  return [
    ...rowIf('Short by', shortfall === undefined ? '' : `${amount(shortfall)}, ${percent(shortfall.share)}`),
    ...rowIf('Failed', failed.map(describeFailure).join('; ')),
  ];
}

/** The promise of a transfer, beside its record: amounts, fees and recipients. */
export function promiseRows({ data }: RenderedEvent, { destination }: Transfer): NoticeRow[] {
  const { promised, minimum, fees = [], funder, recipient, refundRecipient, delivered } = data.transfer ?? {};
  const isReported = delivered === undefined && destination?.amount === promised?.amount;
  return [
    ...rowIf('Promised', promised === undefined || isReported ? '' : amount(promised)),
    ...rowIf('At least', minimum === undefined ? '' : amount(minimum)),
    ...rowIf('Fees', fees.map((fee) => [amount(fee), fee.kind].filter(Boolean).join(' ')).join(', ')),
    ...rowIf('From', funder ?? ''),
    ...rowIf('To', recipient ?? ''),
    ...rowIf('Refund to', refundRecipient ?? ''),
  ];
}

/** Formats a changed member with its values, as far as both are short: `steps[0].status OPEN → FULFILLED`. */
export function describeChange(path: string, transfer: TransferFacts | undefined): string {
  const change = transfer?.changed?.find((one) => one.path === path);
  // The status has a row of its own, and an added member has no old value.
  if (change?.old == null || path === 'status' || path === 'state') return path;
  const [before, now] = [describeValue(change.old), describeValue(change.new)];
  const isLong = before.length > LONGEST_VALUE || now.length > LONGEST_VALUE;
  // Base units are reported in token units elsewhere.
  return isLong || BASE_UNITS.test(before) ? path : `${path} ${before} → ${now || 'none'}`;
}

function describeFailure({ path, status, reason }: NonNullable<TransferFacts['failed']>[number]): string {
  return [`${path} ${status}`, reason].filter(Boolean).join(': ');
}

type TransferAmount = NonNullable<TransferFacts['sent']>;

/** Formats an amount as `1,250.00 USDC`, else in base units of the token. */
function amount({ amount: baseUnits, units, symbol, token }: TransferAmount): string {
  if (units !== undefined && symbol !== undefined) return printableLine(`${groupUnits(units)} ${symbol}`);
  return printableLine(
    token === undefined ? `${baseUnits} base units` : `${baseUnits} base units of ${token}`,
  );
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}
