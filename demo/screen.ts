import type { RenderedEvent } from '../src/domain/events/event.ts';
import { isJsonObject, type JsonValue } from '../src/domain/json.ts';
import { type RouteSummary, readRoute } from '../src/domain/quotes/route.ts';
import { chainName } from '../src/domain/transfers/chains.ts';
import { describeAmount } from '../src/domain/transfers/money.ts';

/** One line about an event: time, type, subject, amount, source, destination, and our delay. */
export function eventLine(event: RenderedEvent, verified: boolean): string {
  const { subject, detectionDelaySeconds, sequence } = event.data;
  const delay = detectionDelaySeconds === null ? '' : `${detectionDelaySeconds.toFixed(1)} s`;
  return [
    event.timestamp.slice(11, 19),
    event.type.padEnd(24),
    shorten(subject.id).padEnd(24),
    `#${sequence}`.padEnd(4),
    transfer(event).padEnd(46),
    delay.padStart(7),
    verified ? ' signature ok' : ' SIGNATURE WRONG',
  ].join(' ');
}

function shorten(id: string): string {
  return id.length <= 24 ? id : `${id.slice(0, 14)}…${id.slice(-8)}`;
}

function transfer(event: RenderedEvent): string {
  const { record } = event.data;
  const priced = readRoute(record);
  if (priced !== null) return price(priced);
  const source = record.sourceTx;
  const destination = record.destinationTx;
  if (!isJsonObject(source)) return '';
  const to = isJsonObject(destination) ? destination.chainId : firstStepChain(record.steps);
  const amount = describeAmount({
    amount: text(source.amount),
    chainId: text(source.chainId),
    token: text(source.token),
  });
  const route =
    to === undefined
      ? chainName(text(source.chainId))
      : `${chainName(text(source.chainId))} to ${chainName(text(to))}`;
  return `${amount}, ${route}`;
}

function price({ source, destination, amount, output }: RouteSummary): string {
  const units = (end: RouteSummary['source'], amount: string): string =>
    describeAmount({ amount, chainId: String(end.chainId), token: end.token });
  return output === null
    ? 'no solver quotes it'
    : `${units(source, amount)} gives ${units(destination, output)}`;
}

function firstStepChain(steps: JsonValue | undefined): JsonValue | undefined {
  const step = Array.isArray(steps) ? steps[0] : undefined;
  const to = isJsonObject(step) ? step.to : undefined;
  return isJsonObject(to) ? to.chainId : undefined;
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
