import type { RenderedEvent } from '../../domain/event.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { readText } from '../../domain/transfer.ts';
import { isOperatorEvent, kindName } from './title.ts';

/** What the usual steps of a transfer mean for whoever waits for it. */
const TRANSFER_SENTENCES: ReadonlyMap<string, string> = new Map([
  ['pending', 'The transfer has been funded and waits to be filled.'],
  ['filled', 'The transfer has been paid out on the destination chain.'],
  ['settled', 'The transfer is complete: it was paid out, and its solver has been paid back.'],
  ['expired', 'The transfer was not filled before its deadline.'],
  ['refundable', 'The transfer was not filled in time; its funds can be claimed back on the source chain.'],
  ['refunded', 'The funds of the transfer were returned on the source chain.'],
  ['failed', 'The transfer failed.'],
]);

/** What happened to a part of a subject, by its name. */
const PARTIAL_FAILURES: ReadonlyMap<string, (name: string) => string> = new Map([
  ['step_failed', (name) => `A part of the ${name} has failed, while its status is the same.`],
  ['error', (name) => `The transfer service gives an error for the ${name}; its status is the same.`],
  ['refund_sent', (name) => `A refund was sent for a part of the ${name}; its status is the same.`],
]);

/** What becomes of a route's price. */
const ROUTE_SENTENCES: ReadonlyMap<string, string> = new Map([
  ['available', 'Solvers quote this route.'],
  ['unavailable', 'No solver quotes this route now.'],
  ['moved', 'The output of this route differs from the one told before by more than the configured share.'],
]);

/** What is with the watching itself, for its operator. */
const OPERATOR_SENTENCES: ReadonlyMap<string, string> = new Map([
  ['upstream.unreachable', 'The transfer service gives no usable answers; it is asked on.'],
  ['upstream.reachable', 'The transfer service gives usable answers again.'],
  [
    'upstream.unauthorized',
    'The transfer service refuses the API key; it is asked rarely until it takes it.',
  ],
  ['upstream.authorized', 'The transfer service takes the API key again.'],
  ['receiver.failing', 'Deliveries to this receiver fail; they are tried again.'],
  [
    'receiver.disabled',
    'Deliveries to this receiver have stopped; its events are kept until it is enabled or their retention ends.',
  ],
  ['receiver.recovered', 'Deliveries to this receiver succeed again.'],
  [
    'receiver.events_dropped',
    'The retention of events ended before this receiver got them: they are lost to it.',
  ],
]);

/** One or two sentences about what happened. Words of the upstream appear in it as they came. */
export function renderSummary(event: RenderedEvent): string {
  const { data } = event;
  const remarks = [
    data.skipped === true ? 'A usual step before it was not seen.' : '',
    data.regression === true ? 'The status moved backward.' : '',
  ];
  return [mainSentence(event), ...remarks].filter((sentence) => sentence !== '').join(' ');
}

function mainSentence(event: RenderedEvent): string {
  const { type, data } = event;
  const happening = type.slice(type.indexOf('.') + 1);
  if (isOperatorEvent(event))
    return OPERATOR_SENTENCES.get(type) ?? 'This is a notice about the watching itself, for its operator.';
  const name = kindName(data.subject.kind);
  if (happening === 'updated')
    return `Details of the ${name} became known or changed; its status is the same.`;
  if (happening === 'expiring') return `The ${name} expires soon, and it is not funded.`;
  if (happening === 'expired' && data.subject.kind === 'vault')
    return 'The deadline of the vault has passed, and it was not funded.';
  if (happening === 'expired' && data.subject.kind === 'quote')
    return 'The quote has expired, and it was not funded.';
  if (type === 'quote.signature_invalid') return invalidSignature(data.record);
  const failure = PARTIAL_FAILURES.get(happening);
  if (failure !== undefined) return failure(name);
  if (type === 'intent.short') return "What was delivered is less than the minimum of the transfer's quote.";
  if (happening === 'overdue') return `The ${name} is taking longer than expected.`;
  if (happening === 'unknown') return `The transfer service does not know the ${name} any more.`;
  if (data.subject.kind === 'route' && ROUTE_SENTENCES.has(happening))
    return ROUTE_SENTENCES.get(happening) ?? '';
  const isTransfer = data.subject.kind === 'intent' || data.subject.kind === 'deposit-address';
  const sentence = isTransfer ? TRANSFER_SENTENCES.get(happening) : undefined;
  return sentence ?? `The status of the ${name} is now “${data.status ?? happening}”.`;
}

/** Why the signature of a quote does not hold, as the verification said it. */
function invalidSignature({ signature }: JsonObject): string {
  const sentence = 'The quote that was handed over is not as the transfer service signed it.';
  const reason = isJsonObject(signature) ? readText(signature.reason) : null;
  const part = isJsonObject(signature) ? readText(signature.part) : null;
  return reason === null || part === null ? sentence : `${sentence} Wrong is ${part}: ${reason}.`;
}
