import { eventKind, knownStatuses, type Telling, telling, tellingOf } from '../subjects/kinds.ts';
import { SUBJECT_KINDS } from '../subjects/subject.ts';

/** Events about the daemon's surroundings; they reach only receivers whose `events` name them. */
const OPERATOR_EVENTS: { readonly [type: string]: Telling } = {
  'upstream.unreachable': telling({
    says: 'The transfer service gives no usable answers; it is asked on.',
    isTrouble: true,
  }),
  'upstream.reachable': telling({ says: 'The transfer service gives usable answers again.' }),
  'upstream.unauthorized': telling({
    says: 'The transfer service refuses the API key; it is asked rarely until it takes it.',
    isTrouble: true,
  }),
  'upstream.authorized': telling({ says: 'The transfer service takes the API key again.' }),
  'receiver.failing': telling({
    says: 'Deliveries to this receiver fail; they are tried again.',
    isTrouble: true,
  }),
  'receiver.disabled': telling({
    says: 'Deliveries to this receiver have stopped; its events are stored until it is enabled or their retention ends.',
    isTrouble: true,
  }),
  'receiver.recovered': telling({ says: 'Deliveries to this receiver succeed again.' }),
  'receiver.paused': telling({
    says: 'Its operator has paused this receiver: its events wait until it is resumed.',
  }),
  'receiver.resumed': telling({ says: 'Its operator has resumed this receiver.' }),
  'receiver.events_dropped': telling({
    says: 'Events are lost to this receiver: their retention ended before it got them, or Redis has lost them.',
    isTrouble: true,
  }),
  'upstream.record_too_large': telling({
    says: 'A record of a wallet is too large to be read. Its changes, and what is listed behind it in the same status, are not seen.',
    isTrouble: true,
  }),
  'upstream.cursor_expired': telling({
    says: 'Pages of a wallet are read too slowly: their cursors expire, and transfers behind the first page may not be seen.',
    isTrouble: true,
  }),
  'intentwatch.suspension_ended': telling({
    says: 'What left the config was removed at the end of its grace span: the events that waited for it are dropped.',
    isTrouble: true,
  }),
  'intentwatch.storage_truncated': telling({
    says: 'The embedded Redis was started with a file that had lost its end: the last writes are lost.',
    isTrouble: true,
  }),
  'intentwatch.large_removal': telling({
    says: 'A config removes many wallets, other subjects or receivers: a reload is held until it is confirmed, or a start has applied it.',
    isTrouble: true,
  }),
  'intentwatch.storage_restored': telling({
    says: 'Redis went back to an earlier state: a new epoch of the data has begun. What is found again comes again, under the same ids.',
    isTrouble: true,
  }),
  'intentwatch.clock_jumped': telling({
    says: 'The clock of Redis has jumped. Nothing expires, and reminders wait, until responses of the upstream confirm its time.',
    isTrouble: true,
  }),
  'intentwatch.clock_differs': telling({
    says: 'The clocks of the processes, Redis and the upstream have differed for an hour: reminders go by the time of Redis again.',
    isTrouble: true,
  }),
};

export const OPERATOR_TYPES: readonly string[] = Object.keys(OPERATOR_EVENTS);

/** What `intentwatch test` sends: about nothing, and in no log. */
export const TEST_TYPE = 'intentwatch.test';

/** Every event type that can be foreseen. An unknown status of the upstream's makes a type of its own beside these. */
export const EVENT_TYPES: readonly string[] = [
  ...SUBJECT_KINDS.flatMap((kind) =>
    [...new Set([...knownStatuses(kind), ...Object.keys(eventKind(kind).happenings)])].map(
      (word) => `${kind}.${word}`,
    ),
  ),
  ...OPERATOR_TYPES,
  TEST_TYPE,
];

/** True when an event is about the daemon's surroundings, not about a subject. */
export function isOperatorKind(kind: string): boolean {
  return kind === 'intentwatch' || OPERATOR_TYPES.some((type) => type.startsWith(`${kind}.`));
}

/** How an event of a type is reported; null for a word that is not known. */
export function tellingOfType(type: string): Telling | null {
  const dot = type.indexOf('.');
  return OPERATOR_EVENTS[type] ?? tellingOf(type.slice(0, dot), type.slice(dot + 1));
}

const TROUBLES: ReadonlySet<string> = new Set(
  EVENT_TYPES.filter((type) => tellingOfType(type)?.isTrouble === true).map(wordOf),
);

/** True when somebody may have to do something about an event: by its word, which says the same of every kind. */
export function isTrouble(type: string): boolean {
  return TROUBLES.has(wordOf(type));
}

function wordOf(type: string): string {
  return type.slice(type.indexOf('.') + 1);
}
