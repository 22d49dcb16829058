import type { RenderedEvent } from '../../domain/events/event.ts';
import { descriptionOfType } from '../../domain/events/event-types.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { COMMON_NAMES, chainName, type Directory, explorerTxUrl } from '../../domain/transfers/chains.ts';
import { describeAmount } from '../../domain/transfers/money.ts';
import { type Leg, readText, type Transfer } from '../../domain/transfers/transfer.ts';
import { printableLine } from '../printable.ts';
import {
  describeChange,
  describeValue,
  formatTime,
  formatUnixSeconds,
  type NoticeRow,
  promiseMembers,
  promiseRows,
  proofRows,
  proofSentence,
  rowIf,
  shownTransfer,
  sinceFunding,
  troubleRows,
} from './rows.ts';
import { isOperatorEvent, kindName, renderElapsed, renderTitle } from './title.ts';

/** The content of a mail, before it becomes text or HTML. Every string is one printable line. */
export type Notice = { title: string; summary: string; sections: NoticeRow[][] };

const MAX_OTHER_ROWS = 30;

/** Members of a record that the rows of every notice already contain. */
const REPORTED_MEMBERS: ReadonlySet<string> = new Set(['id', 'type', 'status', 'state', 'updatedAt']);

const NAMED_MEMBERS: ReadonlyMap<string, { label: string; isTime?: true }> = new Map([
  ['txHash', { label: 'Transaction' }],
  ['permitTxHash', { label: 'Permit transaction' }],
  ['intentHash', { label: 'Intent' }],
  ['intentHashes', { label: 'Intents' }],
  ['vaultAddress', { label: 'Vault' }],
  ['deadline', { label: 'Deadline', isTime: true }],
  ['expiresAt', { label: 'Expires', isTime: true }],
  ['error', { label: 'Error' }],
]);

/** Builds the notice of an event, in an order for readers. It reports a record of any shape, member by member if need be. */
export function makeNotice(event: RenderedEvent, directory: Directory = COMMON_NAMES): Notice {
  const transfer = shownTransfer(event);
  return {
    title: renderTitle(event, { transfer, directory }),
    summary: printableLine(renderSummary(event)),
    sections: [
      [
        ...statusRows(event),
        ...troubleRows(event),
        ...transferRows(transfer, directory),
        ...promiseRows(event, transfer),
        ...recordRows(event, transfer),
      ],
      proofRows(event, directory),
      subscriptionRows(event),
      eventRows(event),
    ].filter((rows) => rows.length > 0),
  };
}

/** Further facts of a subject in a digest: its transactions, the reasons of a failure, and its metadata. */
export function briefRows(event: RenderedEvent, directory: Directory): NoticeRow[] {
  const { data } = event;
  const transfer = shownTransfer(event);
  const transactions = transferRows(transfer, directory).filter(({ label }) => label.endsWith('transaction'));
  const reasons = ['error', 'reason'].flatMap((key) =>
    rowIf(NAMED_MEMBERS.get(key)?.label ?? 'Reason', describeValue(data.record[key])),
  );
  return [
    ...expectedRows(event),
    ...transactions,
    ...reasons,
    ...metadataRows(event),
    ...rowIf('Subject', data.subject.id),
  ];
}

function statusRows(event: RenderedEvent): NoticeRow[] {
  const { data } = event;
  const { status, previousStatus } = data;
  const change = [previousStatus, status].filter((word) => word !== null && word !== '').join(' → ');
  return [
    ...rowIf('Status', status !== null && previousStatus === status ? status : change),
    ...rowIf(event.type.endsWith('.overdue') ? 'Waiting for' : 'Took', renderElapsed(event)),
    ...rowIf('Since funding', data.elapsedSeconds === undefined ? sinceFunding(event) : ''),
    ...expectedRows(event),
    ...rowIf('Changed', data.changes.map((path) => describeChange(path, data.transfer)).join(', ')),
  ];
}

/** A row such as `filled by 2026-11-20 11:31:00 UTC (83 %)`: the expected status, its time, and its probability. */
function expectedRows({ data: { expectedBy } }: RenderedEvent): NoticeRow[] {
  if (expectedBy === undefined) return [];
  const { status, at, probability } = expectedBy;
  const time = formatTime(Date.parse(at)) ?? at;
  return rowIf('Expected', `${status} by ${time} (${Math.round(probability * 100)} %)`);
}

function transferRows({ source, destination, refund }: Transfer, directory: Directory): NoticeRow[] {
  return [
    ...legRows(source, { directory, amount: sourceLabel(source), transaction: 'Source transaction' }),
    ...legRows(destination, {
      directory,
      amount: destination?.done ? 'Received' : 'To receive',
      transaction: 'Destination transaction',
    }),
    ...legRows(refund, { directory, amount: 'Refunded', transaction: 'Refund transaction' }),
  ];
}

/** Label of the source amount. A vault or gateway job does not report whether its amount has been sent. */
function sourceLabel(source: Leg | null): string {
  if (source?.done) return 'Sent';
  return source?.members.includes('steps') || source?.members.length === 0 ? 'To send' : 'Amount';
}

function legRows(
  leg: Leg | null,
  { directory, ...labels }: { directory: Directory; amount: string; transaction: string },
): NoticeRow[] {
  if (leg === null) return [];
  const { chainId, token, amount, txHash } = leg;
  const chain = chainId === null ? '' : chainName(chainId, directory);
  const place = chain === '' ? '' : ` on ${chain}`;
  const what = amount === null ? chain : `${describeAmount({ amount, token, chainId }, directory)}${place}`;
  const transaction = rowIf(labels.transaction, txHash ?? '').map((row) => ({
    ...row,
    url: chainId === null || txHash === null ? null : explorerTxUrl(chainId, txHash, directory),
  }));
  return [...rowIf(labels.amount, what), ...transaction];
}

function recordRows(event: RenderedEvent, transfer: Transfer): NoticeRow[] {
  const { record } = event.data;
  const reported = new Set([...shownMembers(record, transfer), ...promiseMembers(event)]);
  const rest = Object.keys(record).filter((key) => !reported.has(key));
  const named = rest.filter((key) => NAMED_MEMBERS.has(key));
  const others = rest.filter((key) => !NAMED_MEMBERS.has(key)).slice(0, MAX_OTHER_ROWS);
  return [...named, ...others].flatMap((key) => {
    const { label, isTime } = NAMED_MEMBERS.get(key) ?? { label: key };
    const value = describeValue(record[key]);
    return rowIf(label, isTime ? (formatUnixSeconds(value) ?? value) : value);
  });
}

/** The members in the rows of the transfer. A member that was unreadable there is reported on its own. */
function shownMembers(record: JsonObject, { source, destination, refund }: Transfer): Set<string> {
  const legs = [source, destination, refund].filter((leg) => leg !== null);
  const reported = new Set([...REPORTED_MEMBERS, ...legs.flatMap(({ members }) => members)]);
  const transaction = readText(record.txHash);
  if (legs.some(({ txHash }) => txHash !== null && txHash === transaction)) reported.add('txHash');
  if ([source, destination].every((leg) => leg !== null && leg.members.length > 0)) reported.add('steps');
  return reported;
}

function subscriptionRows(event: RenderedEvent): NoticeRow[] {
  const { data } = event;
  return [
    ...rowIf('Subscriptions', data.subscriptions.join(', ')),
    ...rowIf('Wallets', data.wallets.join(', ')),
    ...metadataRows(event),
  ];
}

function metadataRows({ data }: RenderedEvent): NoticeRow[] {
  return Object.entries(data.metadata).flatMap(([key, value]) => rowIf(key, value));
}

function eventRows({ id, timestamp, data }: RenderedEvent): NoticeRow[] {
  const { upstreamUpdatedAt, detectionDelaySeconds: delay } = data;
  const updated = upstreamUpdatedAt === null ? null : formatUnixSeconds(String(upstreamUpdatedAt));
  const noticed = formatTime(Date.parse(timestamp)) ?? timestamp;
  return [
    ...rowIf('Subject', data.subject.id),
    ...rowIf('Last update', updated ?? ''),
    ...rowIf('Noticed', delay === null ? noticed : `${noticed}, ${delay} s later`),
    ...rowIf('Event', `${id}, number ${data.sequence} of its subject`),
  ];
}

/** One or two sentences about the event. Texts of the upstream appear unchanged. */
function renderSummary(event: RenderedEvent): string {
  const { data } = event;
  const remarks = [
    data.suspended === true ? 'It waited: what leads to it had left the config for a while.' : '',
    data.skipped === true ? 'A usual step before it was not seen.' : '',
    data.afterRestore === true ? 'It may have come before: Redis went back.' : '',
    data.regression === true ? 'The status moved backward.' : '',
  ];
  return [mainSentence(event), ...remarks].filter((sentence) => sentence !== '').join(' ');
}

function mainSentence(event: RenderedEvent): string {
  const { type, data } = event;
  const text = descriptionOfType(type)?.text ?? null;
  if (type === 'quote.signature_invalid') return `${text}${whyInvalid(data.record)}`;
  if (text !== null && data.proof !== undefined) return `${text} ${proofSentence(data.proof)}`;
  if (text !== null) return text;
  if (isOperatorEvent(event)) return 'This is a notice about the watching itself, for its operator.';
  const word = data.status ?? type.slice(type.indexOf('.') + 1);
  return `The status of the ${kindName(data.subject.kind)} is now “${word}”.`;
}

function whyInvalid({ signature }: JsonObject): string {
  const reason = isJsonObject(signature) ? readText(signature.reason) : null;
  const part = isJsonObject(signature) ? readText(signature.part) : null;
  return reason === null || part === null ? '' : ` Wrong is ${part}: ${reason}.`;
}
