import type { RenderedEvent } from '../../domain/events/event.ts';
import { descriptionOfType, isOperatorKind } from '../../domain/events/event-types.ts';
import { eventKind } from '../../domain/subjects/kinds.ts';
import { chainName, type Directory } from '../../domain/transfers/chains.ts';
import { describeAmount } from '../../domain/transfers/money.ts';
import type { Leg, Transfer } from '../../domain/transfers/transfer.ts';
import { printableLine } from '../printable.ts';
import { formatDuration, PAYMENT_NAMES } from './rows.ts';

const MAX_TITLE_LENGTH = 150;

/** True when an event is about the daemon itself. */
export function isOperatorEvent(event: RenderedEvent): boolean {
  return isOperatorKind(event.data.subject.kind);
}

/** The name of a kind in running text. */
export function kindName(kind: string): string {
  return kind === 'upstream' ? 'transfer service' : eventKind(kind).name;
}

/** Sources of an event's texts: the transfer in its record, and the names of chains and tokens. */
export type View = { transfer: Transfer; directory: Directory };

/** Renders the title, e.g. `Filled: 1,250.00 USDC, Base to Optimism, 23 s`; printable, at most 150 characters. */
export function renderTitle(event: RenderedEvent, view: View): string {
  const took = renderElapsed(event);
  const reported = [renderHappening(event), renderAbout(event, view)]
    .filter((part) => part !== '')
    .join(': ');
  const end = took === '' ? '' : `, ${took}`;
  return `${printableLine(reported, MAX_TITLE_LENGTH - end.length)}${end}`;
}

/** Renders the happening, e.g. `Filled` or `Gasless job failed`; printable. */
export function renderHappening(event: RenderedEvent): string {
  const { kind } = event.data.subject;
  // A transfer needs no name: nearly every mail is about one.
  const name = kind === 'intent' ? '' : kindName(kind);
  return capitalise(printableLine(`${name} ${happening(event)}`));
}

/** Renders its object, e.g. `1,250.00 USDC, Base to Optimism`; empty where the happening contains it. */
export function renderAbout(event: RenderedEvent, view: View): string {
  return printableLine(isOperatorEvent(event) ? operatorSubject(event) : describeSubject(event, view));
}

/** Renders the elapsed time, e.g. `23 s`; empty where that is not known. */
export function renderElapsed({ data: { elapsedSeconds } }: RenderedEvent): string {
  return elapsedSeconds === undefined ? '' : formatDuration(elapsedSeconds);
}

function happening({ type, data }: RenderedEvent): string {
  const word = words(type.slice(type.indexOf('.') + 1));
  if (data.regression === true) return `back to ${word}`;
  const title = descriptionOfType(type)?.title ?? word;
  // A chain's result is about one payment: a verified funding proves nothing about the delivery.
  return data.proof === undefined ? title : `${PAYMENT_NAMES[data.proof.payment]} ${title}`;
}

function operatorSubject({ data: { subject } }: RenderedEvent): string {
  const id = subject.id.startsWith(`${subject.kind}:`)
    ? subject.id.slice(subject.kind.length + 1)
    : subject.id;
  return id === subject.kind || subject.kind === 'intentwatch' ? '' : id;
}

function describeSubject(event: RenderedEvent, view: View): string {
  return event.data.subject.kind === 'route' ? describePrice(event, view) : describeTransfer(event, view);
}

/** `base-to-optimism, 1,250.00 USDC gives 1,249.37 USDC`; the name alone without a price. */
function describePrice({ data: { subject } }: RenderedEvent, { transfer, directory }: View): string {
  const { source, destination } = transfer;
  const name = shortId(subject.id);
  if (!source?.amount || !destination?.amount) return name;
  return `${name}, ${titleAmount(source, directory)} gives ${titleAmount(destination, directory)}`;
}

/** `1,250.00 USDC, Base to Optimism`, as much of it as is known, else the subject. */
function describeTransfer({ data: { subject } }: RenderedEvent, { transfer, directory }: View): string {
  const { source, destination } = transfer;
  const paid = [source, destination].find((leg) => leg !== null && leg.amount !== null) ?? null;
  const chains = [source, destination].flatMap((leg) =>
    leg?.chainId ? [chainName(leg.chainId, directory)] : [],
  );
  const route = [...new Set(chains)].join(' to ');
  const reported = [paid === null ? '' : titleAmount(paid, directory), route]
    .filter((part) => part !== '')
    .join(', ');
  if (reported !== '') return reported;
  // Every other kind has its name before the colon already.
  return subject.kind === 'intent' ? `transfer ${shortId(subject.id)}` : shortId(subject.id);
}

/** An unknown token's address is too long for a title; the mail names it. */
function titleAmount({ amount, token, chainId }: Leg, directory: Directory): string {
  const isListed = token !== null && chainId !== null && directory.token(chainId, token) !== null;
  return describeAmount({ amount: amount ?? '', token: isListed ? token : null, chainId }, directory);
}

function shortId(id: string): string {
  const bare = id.slice(id.indexOf(':') + 1);
  return bare.length <= 40 ? bare : `${bare.slice(0, 10)}…${bare.slice(-6)}`;
}

function words(text: string): string {
  return text
    .replace(/[._-]+/g, ' ')
    .trim()
    .toLowerCase();
}

function capitalise(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
