import type { RenderedEvent } from '../../domain/events/event.ts';
import type { TransferFacts } from '../../domain/events/event-schema.ts';
import { groupUnits } from '../../domain/transfers/amounts.ts';
import { type Leg, readTransfer, type Transfer } from '../../domain/transfers/transfer.ts';
import { printableLine } from '../printable.ts';
import { describeValue, type Row, rowIf } from './row.ts';
import { formatDuration } from './time.ts';

/** An old or new value that is longer is left out of a line for people. */
const LONGEST_VALUE = 60;

const BASE_UNITS = /^\d{6,}$/;

/** Members of a record that rows of the promise tell, where they tell something. */
export function promiseMembers({ data: { transfer, record } }: RenderedEvent): string[] {
  const reported = transfer === undefined ? [] : ['funder', 'recipient'].filter((key) => key in transfer);
  return record.type === 'route' ? [...reported, 'minimumOutput', 'fees', 'quote'] : reported;
}

/** The time since the transfer was funded, e.g. `23 s`; empty where that is not known. */
export function sinceFunding({ data: { transfer } }: RenderedEvent): string {
  return transfer?.secondsSinceFunding === undefined ? '' : formatDuration(transfer.secondsSinceFunding);
}

/** Both ends of a transfer as its record tells them, else as its quote promised them. */
export function shownTransfer({ data }: RenderedEvent): Transfer {
  const { source, destination, refund } = readTransfer(data.record);
  const { toSend, promised } = data.transfer ?? {};
  return { source: source ?? legOf(toSend), destination: destination ?? legOf(promised), refund };
}

/** An end that no member of the record tells of. */
function legOf(money: Money | undefined): Leg | null {
  if (money === undefined) return null;
  const { amount: units, token = null, chainId = null } = money;
  return { chainId, token, amount: units, txHash: null, done: false, members: [] };
}

/** What went wrong with a transfer: what is missing of it, and which of its parts have failed. */
export function troubleRows({ data: { transfer } }: RenderedEvent): Row[] {
  const { shortfall, failed = [] } = transfer ?? {};
  return [
    ...rowIf('Short by', shortfall === undefined ? '' : `${amount(shortfall)}, ${percent(shortfall.share)}`),
    ...rowIf('Failed', failed.map(describeFailure).join('; ')),
  ];
}

/** What was promised of a transfer, beside what its record tells: amounts, fees, and who gets them. */
export function promiseRows({ data }: RenderedEvent, { destination }: Transfer): Row[] {
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

/** A changed member with its values, as far as both are short: `steps[0].status OPEN → FULFILLED`. */
export function describeChange(path: string, transfer: TransferFacts | undefined): string {
  const change = transfer?.changed?.find((one) => one.path === path);
  // The status has a row of its own, and what there was not has no old value.
  if (change?.old == null || path === 'status' || path === 'state') return path;
  const [before, now] = [describeValue(change.old), describeValue(change.new)];
  const isLong = before.length > LONGEST_VALUE || now.length > LONGEST_VALUE;
  // Base units are reported in token units elsewhere.
  return isLong || BASE_UNITS.test(before) ? path : `${path} ${before} → ${now || 'none'}`;
}

function describeFailure({ path, status, reason }: NonNullable<TransferFacts['failed']>[number]): string {
  return [`${path} ${status}`, reason].filter(Boolean).join(': ');
}

type Money = NonNullable<TransferFacts['sent']>;

/** `1,250.00 USDC`, else base units of the token. */
function amount({ amount: baseUnits, units, symbol, token }: Money): string {
  if (units !== undefined && symbol !== undefined) return printableLine(`${groupUnits(units)} ${symbol}`);
  return printableLine(
    token === undefined ? `${baseUnits} base units` : `${baseUnits} base units of ${token}`,
  );
}

/** A share in percent, e.g. `0.25 %`. */
function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}
