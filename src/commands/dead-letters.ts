import { Command } from 'commander';
import { parseDeliveryId } from '../domain/events/delivery-id.ts';
import type { Event } from '../domain/events/event.ts';
import { wantsType } from '../domain/events/filter.ts';
import { chunks } from '../store/chunks.ts';
import { redisTimeMs } from '../store/connection.ts';
import type { DeliveryFact } from '../store/deliveries.ts';
import { compareEntries, eventOf } from '../store/log-entry.ts';
import { isHeld } from '../store/receivers.ts';
import { type Deliveries, receiverNamed, withDeliveries } from './deliveries-of.ts';
import { type Moment, moment, momentMs } from './moment.ts';
import { CONFIG_DEFAULT } from './start.ts';
import { table, utcTimeOfMs } from './table.ts';

/** A dead letter with its fact; without event when that has left the log. */
type DeadLetter = { receiver: string; id: string; fact: DeliveryFact; event: Event | null };

/** So many are opened again in one step: Redis must not stand still for it. */
const RENEWED_AT_ONCE = 500;

/** Which dead letters are meant: by the ids of their events, or all those that fit what is given. */
type Wanted = {
  events: readonly string[];
  since?: Moment;
  until?: Moment;
  type?: string[];
  status?: string[];
};

type Filters = Omit<Wanted, 'events'>;

/** `dead-letters`: deliveries that ended without success, and the way to try them again. */
export function deadLettersCommand(): Command {
  const retryCommand = withFilters(new Command('retry'))
    .description('Deliver dead letters again, oldest first, with all attempts before them.')
    .argument('<receiver>', 'whose dead letters')
    .argument('[events...]', 'the ids of their events')
    .option('--all', 'all of the receiver')
    .action(async (receiver: string, events: string[], _options: unknown, self: Command) => {
      // The command above has the same filters, and takes them wherever they stand.
      const given = self.optsWithGlobals<Filters & { config: string; all?: true; attempts?: true }>();
      const { config, all, attempts, ...filters } = given;
      if (attempts) throw new Error('found --attempts with retry, expected it without');
      const ways = [events.length > 0, all === true, Object.keys(filters).length > 0].filter(Boolean).length;
      if (ways !== 1) {
        const found = ways === 0 ? 'none' : 'several';
        throw new Error(`found ${found} of events, --all and filters, expected one`);
      }
      await withDeliveries(config, (parts) => retry(receiver, { events, ...filters }, parts));
    });
  return withFilters(new Command('dead-letters'))
    .description('List deliveries that ended without success, oldest first.')
    .argument('[receiver]', 'only those of this receiver')
    .option('--attempts', 'show what each of their last attempts was answered')
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .action(
      async (
        receiver: string | undefined,
        { config, attempts, ...filters }: Filters & { config: string; attempts?: true },
      ) =>
        withDeliveries(config, (parts) =>
          list({ receiver, attempts, wanted: { events: [], ...filters } }, parts),
        ),
    )
    .addCommand(retryCommand);
}

function withFilters(command: Command): Command {
  return command
    .option(
      '--since <time>',
      'of events from then on: a time like 2026-11-20T10:00:00Z, or a span like 2h',
      moment,
    )
    .option('--until <time>', 'of events up to then, in the same way', moment)
    .option('--type <glob...>', 'of these types, with * and a leading ! (repeatable)')
    .option(
      '--status <code...>',
      'whose last answer was one of these: an HTTP or SMTP code, or "none" (repeatable)',
    );
}

async function list(
  {
    receiver,
    attempts,
    wanted,
  }: { receiver: string | undefined; attempts: true | undefined; wanted: Wanted },
  parts: Deliveries,
): Promise<void> {
  const names =
    receiver === undefined
      ? (await parts.stores.registry.receivers()).map(({ name }) => name).sort()
      : [(await receiverNamed(receiver, parts)).name];
  const nowMs = await redisTimeMs(parts.redis);
  const letters: DeadLetter[] = [];
  for (const name of names) {
    letters.push(...(await deadLettersOf(name, parts)).filter((letter) => isWanted(letter, wanted, nowMs)));
  }
  if (letters.length === 0) return say('no dead letters');
  const head = ['RECEIVER', 'EVENT', 'TYPE', 'SUBJECT', 'ATTEMPTS', 'LAST ATTEMPT', 'REASON'];
  if (!attempts) return say(table([head, ...letters.map(row)]));
  say(table([ATTEMPT_HEAD, ...letters.flatMap(attemptRows)]));
}

const ATTEMPT_HEAD = ['RECEIVER', 'EVENT', 'TYPE', 'AT', 'TOOK', 'REASON', 'ANSWER'];

/** One row per attempt; of the last one the whole answer, of the others its beginning. */
function attemptRows({ receiver, id, fact, event }: DeadLetter): string[][] {
  return fact.attempts.map(({ atMs, durationMs, reason, answer }, index) => [
    receiver,
    parseDeliveryId(id).eventId,
    event?.type ?? 'has left the log',
    utcTimeOfMs(atMs),
    `${durationMs} ms`,
    reason,
    index === fact.attempts.length - 1 ? fact.answer || answer : answer,
  ]);
}

/** Whether a dead letter is one of those that were asked for. What has left the log has no type any more. */
function isWanted({ id, fact, event }: DeadLetter, wanted: Wanted, nowMs: number): boolean {
  const { events, since, until, type, status } = wanted;
  const atMs = Number(fact.entry.split('-')[0]);
  const last = fact.attempts.at(-1);
  const code = String(last?.httpStatus ?? last?.smtpCode ?? 'none');
  return (
    (events.length === 0 || events.includes(parseDeliveryId(id).eventId)) &&
    (since === undefined || atMs >= momentMs(since, nowMs)) &&
    (until === undefined || atMs < momentMs(until, nowMs)) &&
    (type === undefined || (event !== null && wantsType(type, event.type))) &&
    (status === undefined || status.includes(code))
  );
}

function row({ receiver, id, fact, event }: DeadLetter): string[] {
  const { eventId, replay } = parseDeliveryId(id);
  const last = fact.attempts.at(-1);
  return [
    receiver,
    `${eventId}${replay === null ? '' : ` (replay ${replay})`}`,
    event?.type ?? 'has left the log',
    event?.data.subject.id ?? '',
    String(fact.tries),
    last === undefined ? '' : utcTimeOfMs(last.atMs),
    last?.reason ?? '',
  ];
}

/** The dead letters of a receiver in the order of the log. */
async function deadLettersOf(receiver: string, parts: Deliveries): Promise<DeadLetter[]> {
  const { deliveries, events } = parts.stores;
  const letters: DeadLetter[] = [];
  for (const id of await deliveries.dead(receiver, { sinceMs: 0, count: Number.MAX_SAFE_INTEGER })) {
    const fact = await deliveries.fact(receiver, id);
    if (fact !== null) letters.push({ receiver, id, fact, event: eventOf(await events.at(fact.entry)) });
  }
  return letters.sort((a, b) => compareEntries(a.fact.entry, b.fact.entry));
}

/** Nothing is done unless all of the named events can be delivered again. */
async function retry(receiver: string, asked: Wanted, parts: Deliveries): Promise<void> {
  await receiverNamed(receiver, parts);
  const letters = await deadLettersOf(receiver, parts);
  const known = new Set(letters.map(({ id }) => parseDeliveryId(id).eventId));
  const unknown = asked.events.filter((event) => !known.has(event));
  if (unknown.length > 0) {
    throw new Error(`found ${unknown.join(', ')}, expected dead letters of ${receiver} (nothing was done)`);
  }
  const nowMs = await redisTimeMs(parts.redis);
  const wanted = letters.filter((letter) => isWanted(letter, asked, nowMs));
  const gone = wanted.filter(({ event }) => event === null);
  const held = isHeld(await parts.stores.receivers.condition(receiver));
  const ids = wanted.flatMap(({ id, event }) => (event === null ? [] : [id]));
  let renewed = 0;
  for (const some of chunks(ids, RENEWED_AT_ONCE))
    renewed += (await parts.stores.deliveries.renew('', receiver, some)) ?? 0;
  const remarks = [
    `${renewed} of ${letters.length} dead letters of ${receiver} are delivered again`,
    ...(held ? ['it is disabled, so they wait until it is enabled'] : []),
    ...(gone.length > 0 ? [`${gone.length} are of events that have left the log`] : []),
  ];
  say(remarks.join('; '));
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
