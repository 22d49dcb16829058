import { editDistance, globDistance } from '../edit-distance.ts';
import { type Description, description, descriptionOf, eventKind, kindStatuses } from '../subjects/kinds.ts';
import { SUBJECT_KINDS } from '../subjects/subject.ts';
import { matchGlob, wantsType } from './filter.ts';

/** Operator events; they reach only receivers whose `events` name them. */
const OPERATOR_EVENTS: { readonly [type: string]: Description } = {
  'upstream.unreachable': description({
    text: 'The transfer service gives no usable answers; polling goes on.',
    isTrouble: true,
  }),
  'upstream.reachable': description({ text: 'The transfer service gives usable answers again.' }),
  'upstream.unauthorized': description({
    text: 'The transfer service refuses the API key; it is polled rarely until it accepts the key.',
    isTrouble: true,
  }),
  'upstream.authorized': description({ text: 'The transfer service takes the API key again.' }),
  'receiver.failing': description({
    text: 'Deliveries to this receiver fail; they are tried again.',
    isTrouble: true,
  }),
  'receiver.disabled': description({
    text: 'Deliveries to this receiver have stopped; its events are stored until it is enabled or their retention ends.',
    isTrouble: true,
  }),
  'receiver.recovered': description({ text: 'Deliveries to this receiver succeed again.' }),
  'receiver.paused': description({
    text: 'Its operator has paused this receiver: its events wait until it is resumed.',
  }),
  'receiver.resumed': description({ text: 'Its operator has resumed this receiver.' }),
  'receiver.events_dropped': description({
    text: 'Events are lost to this receiver: their retention ended before it got them, or Redis has lost them.',
    isTrouble: true,
  }),
  'upstream.record_too_large': description({
    text: 'A record of a wallet is too large to be read. Its changes, and what is listed behind it in the same status, are not seen.',
    isTrouble: true,
  }),
  'upstream.cursor_expired': description({
    text: 'Pages of a wallet are read too slowly: their cursors expire, and transfers behind the first page may not be seen.',
    isTrouble: true,
  }),
  'intentwatch.suspension_ended': description({
    text: 'Entries that left the config were removed at the end of their grace span: the events that waited for them are dropped.',
    isTrouble: true,
  }),
  'intentwatch.storage_truncated': description({
    text: 'The embedded Redis was started with a file that had lost its end: the last writes are lost.',
    isTrouble: true,
  }),
  'intentwatch.quote_domain_unproven': description({
    text: 'Signatures of quotes cannot be verified: the transfer service may sign them under another name. Set upstream.quoteDomain.',
    isTrouble: true,
  }),
  'intentwatch.large_removal': description({
    text: 'A config removes many wallets, other subjects or receivers: a reload is held until it is confirmed, or a start has applied it.',
    isTrouble: true,
  }),
  'intentwatch.storage_restored': description({
    text: 'Redis went back to an earlier state: a new epoch of the data has begun. What is found again comes again, under the same ids.',
    isTrouble: true,
  }),
  'intentwatch.clock_jumped': description({
    text: 'The clock of Redis has jumped. Nothing expires, and reminders wait, until responses of the upstream confirm its time.',
    isTrouble: true,
  }),
  'intentwatch.clock_differs': description({
    text: 'The clocks of the processes, Redis and the upstream have differed for an hour: reminders go by the time of Redis again.',
    isTrouble: true,
  }),
};

export const OPERATOR_TYPES: readonly string[] = Object.keys(OPERATOR_EVENTS);

/** Type of the event of `intentwatch test`, which has no subject and is in no log. */
export const TEST_TYPE = 'intentwatch.test';

/** All foreseeable event types. An unknown status of the upstream makes a type beside these. */
export const EVENT_TYPES: readonly string[] = [
  ...SUBJECT_KINDS.flatMap((kind) =>
    [...new Set([...kindStatuses(kind), ...Object.keys(eventKind(kind).happenings)])].map(
      (word) => `${kind}.${word}`,
    ),
  ),
  ...OPERATOR_TYPES,
  TEST_TYPE,
];

const OPERATOR_KINDS: ReadonlySet<string> = new Set([
  'intentwatch',
  ...OPERATOR_TYPES.map((type) => type.slice(0, type.indexOf('.'))),
]);

/** True when events of a kind are operator events, without a subject of the upstream. */
export function isOperatorKind(kind: string): boolean {
  return OPERATOR_KINDS.has(kind);
}

/** Description of an event type; null for an unknown name. */
export function descriptionOfType(type: string): Description | null {
  const dot = type.indexOf('.');
  return OPERATOR_EVENTS[type] ?? descriptionOf(type.slice(0, dot), type.slice(dot + 1));
}

const TROUBLES: ReadonlySet<string> = new Set(
  EVENT_TYPES.filter((type) => descriptionOfType(type)?.isTrouble === true).map(wordOf),
);

/** True when an event may need action. Its name decides, which means the same for every kind. */
export function isTrouble(type: string): boolean {
  return TROUBLES.has(wordOf(type));
}

function wordOf(type: string): string {
  return type.slice(type.indexOf('.') + 1);
}

const KINDS: readonly string[] = [...new Set(EVENT_TYPES.map(kindOf))];

/** True when a pattern of a receiver's `events` matches a type of the catalogue; with a leading `!`, when it excludes one. */
export function matchesEventType(pattern: string): boolean {
  const glob = pattern.startsWith('!') ? pattern.slice(1) : null;
  return EVENT_TYPES.some((type) =>
    glob === null ? wantsType([pattern], type) : matchGlob(glob, type).matches,
  );
}

/** Corrects a kind one edit away from one of the catalogue; null for any other. A kind with a `*` is never a misspelling. */
export function correctedPattern(pattern: string): string | null {
  const negation = pattern.startsWith('!') ? '!' : '';
  const glob = pattern.slice(negation.length);
  const kind = kindOf(glob);
  if (kind.includes('*') || KINDS.includes(kind)) return null;
  // The length first: a text that is no pattern may be very long.
  const meant = KINDS.find((one) => Math.abs(one.length - kind.length) <= 1 && editDistance(kind, one) === 1);
  return meant === undefined ? null : `${negation}${meant}${glob.slice(kind.length)}`;
}

/** The type of the catalogue nearest to a pattern, of the pattern's kind if that is known; null when none is similar. */
export function nearestType(pattern: string): string | null {
  const glob = pattern.replace(/^!/, '');
  const ofKind = EVENT_TYPES.filter((type) => kindOf(type) === kindOf(glob));
  const distances = (ofKind.length > 0 ? ofKind : EVENT_TYPES).map((type) => ({
    type,
    distance: globDistance(glob, type),
  }));
  const nearest = distances.reduce((best, one) => (one.distance < best.distance ? one : best));
  return ofKind.length > 0 || nearest.distance <= glob.length / 3 ? nearest.type : null;
}

function kindOf(type: string): string {
  return type.split('.', 1)[0] ?? '';
}

/**
 * Reasons why no receiver gets an event.
 * `no-receiver`: a subscription names a missing receiver.
 * `not-in-config`: no subscription that leads to its subject is in the config any more.
 * `filtered`: the `events` and filters of its receivers pass it to none.
 * `pull-only`: its subscriptions name no receiver; clients pull events from the API.
 */
export const UNMATCHED_REASONS = ['no-receiver', 'not-in-config', 'filtered', 'pull-only'] as const;

export type UnmatchedReason = (typeof UNMATCHED_REASONS)[number];

/** Unintended reasons: their events are listed. */
export const LISTED_REASONS = ['no-receiver', 'not-in-config'] as const satisfies readonly UnmatchedReason[];

export type ListedReason = (typeof LISTED_REASONS)[number];

export function isListed(reason: UnmatchedReason): reason is ListedReason {
  return LISTED_REASONS.some((listed) => listed === reason);
}
