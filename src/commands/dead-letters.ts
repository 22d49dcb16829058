import { Command } from 'commander';
import { parseDeliveryId } from '../domain/events/delivery-id.ts';
import {
  type DeadLetter,
  deadLettersOf,
  retryDeadLetters,
  type WantedLetters,
} from '../operations/dead-letters.ts';
import { receiverNamed } from '../operations/resend.ts';
import { type Deliveries, withDeliveries } from './deliveries-of.ts';
import { moment } from './moment.ts';
import { CONFIG_DEFAULT } from './start.ts';
import { table, utcTimeOfMs } from './table.ts';

type Filters = Omit<WantedLetters, 'events'>;

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
  }: { receiver: string | undefined; attempts: true | undefined; wanted: WantedLetters },
  parts: Deliveries,
): Promise<void> {
  const names =
    receiver === undefined
      ? (await parts.stores.registry.receivers()).map(({ name }) => name).sort()
      : [(await receiverNamed(receiver, parts)).name];
  const letters: DeadLetter[] = [];
  for (const name of names) letters.push(...(await deadLettersOf(name, wanted, parts)));
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

async function retry(receiver: string, asked: WantedLetters, parts: Deliveries): Promise<void> {
  const { renewed, all, gone, isHeld } = await retryDeadLetters(receiver, asked, parts);
  const remarks = [
    `${renewed} of ${all} dead letters of ${receiver} are delivered again`,
    ...(isHeld ? ['it is disabled or paused, so they wait until it is enabled or resumed'] : []),
    ...(gone > 0 ? [`${gone} are of events that have left the log`] : []),
  ];
  say(remarks.join('; '));
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
