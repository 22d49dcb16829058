import { Command } from 'commander';
import { parseDeliveryId } from '../domain/delivery-id.ts';
import type { Event } from '../domain/event.ts';
import type { DeliveryFact } from '../store/deliveries.ts';
import { compareEntries } from '../store/entry-order.ts';
import { eventOf } from '../store/log-entry.ts';
import { isHeld } from '../store/receivers.ts';
import { type Deliveries, receiverNamed, withDeliveries } from './deliveries-of.ts';
import { CONFIG_DEFAULT } from './start.ts';
import { table, utcTimeOfMs } from './table.ts';

/** A dead letter with its fact; without event when that has left the log. */
type DeadLetter = { receiver: string; id: string; fact: DeliveryFact; event: Event | null };

/** `dead-letters`: deliveries that ended without success, and the way to try them again. */
export function deadLettersCommand(): Command {
  const retryCommand = new Command('retry')
    .description('Deliver dead letters again, oldest first, with all attempts before them.')
    .argument('<receiver>', 'whose dead letters')
    .argument('[events...]', 'the ids of their events')
    .option('--all', 'all of the receiver')
    .action(async (receiver: string, events: string[], options: { all?: true }, self: Command) => {
      const { config } = self.optsWithGlobals<{ config: string }>();
      if (events.length > 0 === (options.all === true)) {
        const found = events.length > 0 ? 'events and --all' : 'neither events nor --all';
        throw new Error(`found ${found}, expected one of them`);
      }
      await withDeliveries(config, (parts) => retry({ receiver, events }, parts));
    });
  return new Command('dead-letters')
    .description('List deliveries that ended without success, oldest first.')
    .argument('[receiver]', 'only those of this receiver')
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .action(async (receiver: string | undefined, { config }: { config: string }) =>
      withDeliveries(config, (parts) => list(receiver, parts)),
    )
    .addCommand(retryCommand);
}

async function list(receiver: string | undefined, parts: Deliveries): Promise<void> {
  const names =
    receiver === undefined
      ? (await parts.registry.receivers()).map(({ name }) => name).sort()
      : [(await receiverNamed(receiver, parts)).name];
  const letters: DeadLetter[] = [];
  for (const name of names) letters.push(...(await deadLettersOf(name, parts)));
  const head = ['RECEIVER', 'EVENT', 'TYPE', 'SUBJECT', 'ATTEMPTS', 'LAST ATTEMPT', 'REASON'];
  say(letters.length === 0 ? 'no dead letters' : table([head, ...letters.map(row)]));
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
  const { deliveries, events } = parts;
  const letters: DeadLetter[] = [];
  for (const id of await deliveries.dead(receiver, { sinceMs: 0, count: Number.MAX_SAFE_INTEGER })) {
    const fact = await deliveries.fact(receiver, id);
    if (fact !== null) letters.push({ receiver, id, fact, event: eventOf(await events.at(fact.entry)) });
  }
  return letters.sort((a, b) => compareEntries(a.fact.entry, b.fact.entry));
}

/** Nothing is done unless all of the events can be delivered again. */
async function retry(
  { receiver, events }: { receiver: string; events: readonly string[] },
  parts: Deliveries,
): Promise<void> {
  await receiverNamed(receiver, parts);
  const letters = await deadLettersOf(receiver, parts);
  const known = new Set(letters.map(({ id }) => parseDeliveryId(id).eventId));
  const unknown = events.filter((event) => !known.has(event));
  if (unknown.length > 0) {
    throw new Error(`found ${unknown.join(', ')}, expected dead letters of ${receiver} (nothing was done)`);
  }
  const wanted = letters.filter(
    ({ id }) => events.length === 0 || events.includes(parseDeliveryId(id).eventId),
  );
  const gone = wanted.filter(({ event }) => event === null);
  const held = isHeld(await parts.receivers.condition(receiver));
  let renewed = 0;
  for (const { id, event } of wanted) {
    if (event === null) continue;
    const became = await parts.deliveries.renew('', receiver, id);
    if (became === 'open' && !held) await parts.queues.add(receiver, [{ id, afterMs: 0 }]);
    if (became === 'open' || became === 'waiting') renewed += 1;
  }
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
