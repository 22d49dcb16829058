import { Command } from 'commander';
import {
  COUNTED,
  disableReceiver,
  enableReceiver,
  listReceivers,
  pauseReceiver,
  type ReceiverView,
  resumeReceiver,
} from '../operations/receivers.ts';
import { isHeld } from '../store/receivers.ts';
import { type Deliveries, unlessRelayed, withDeliveries } from './deliveries-of.ts';
import { CONFIG_DEFAULT } from './start.ts';
import { table, utcTimeOfMs } from './table.ts';

/** How long an operator waits to see a receiver enabled. */
const ENABLING_MS = 10_000;
const LOOK_EVERY_MS = 100;

/** `receivers`: how every receiver is, and the way to disable and to enable one. */
export function receiversCommand(): Command {
  const command = new Command('receivers')
    .description(
      'Show the receivers: state, backlog, oldest undelivered, next attempt, dead letters, last success, last error.',
    )
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .action(async ({ config }: { config: string }) => withDeliveries(config, list));
  const move = (name: string, description: string, act: typeof enable): Command =>
    new Command(name)
      .description(description)
      .argument('<name>', 'the receiver')
      .action(async (receiver: string, _options: object, self: Command) => {
        const { config } = self.optsWithGlobals<{ config: string }>();
        await withDeliveries(config, (parts) => act(receiver, parts));
      });
  return command
    .addCommand(
      move('enable', 'Deliver to a disabled receiver again: first what it missed, oldest first.', enable),
    )
    .addCommand(
      move('pause', 'Make no attempts until it is resumed: what is open waits, dead letters stay.', pause),
    )
    .addCommand(move('resume', 'Deliver to a paused receiver again, what waited first.', resume))
    .addCommand(move('disable', 'Make no more attempts, and keep the events until it is enabled.', disable));
}

async function list(parts: Deliveries): Promise<void> {
  const rows = (await listReceivers({ counted: COUNTED }, parts)).map(row);
  const head = [
    'NAME',
    'TYPE',
    'STATE',
    'BACKLOG',
    'OLDEST',
    'NEXT ATTEMPT',
    'DEAD',
    'LAST SUCCESS',
    'LAST ERROR',
  ];
  say(rows.length === 0 ? 'no receivers: no daemon has run with this Redis' : table([head, ...rows]));
}

function row(receiver: ReceiverView): string[] {
  const { name, type, removed, backlog, backlogIsMore, oldestUndeliveredAt, nextAttemptAt } = receiver;
  const { deadLetters, lastSuccessAt, lastErrorAt, lastError } = receiver;
  return [
    name,
    type,
    `${describeState(receiver)}${removed ? ', not in the config' : ''}`,
    `${backlog}${backlogIsMore ? ' or more' : ''}`,
    time(oldestUndeliveredAt),
    time(nextAttemptAt),
    String(deadLetters),
    lastSuccessAt === null ? 'never' : time(lastSuccessAt),
    lastErrorAt === null ? 'never' : `${time(lastErrorAt)} ${lastError ?? ''}`,
  ];
}

/** A time of the API to the second; empty where there is none. */
function time(iso: string | null): string {
  return iso === null ? '' : utcTimeOfMs(Date.parse(iso));
}

function describeState({ state, failingSince, disabledAt, disabledBy, pausedAt }: ReceiverView): string {
  if (state === 'failing' && failingSince !== null) return `failing since ${time(failingSince)}`;
  if (state === 'paused' && pausedAt !== null) return `paused since ${time(pausedAt)}`;
  if (state !== 'disabled' || disabledAt === null) return state;
  const why = { failures: 'failures', gone: 'an answer of 410', operator: 'the operator' }[
    disabledBy ?? 'operator'
  ];
  return `disabled by ${why} at ${time(disabledAt)}`;
}

async function disable(name: string, parts: Deliveries): Promise<void> {
  const before = await disableReceiver(name, parts);
  say(before === 'disabled' ? `${name} was disabled already` : `${name} is disabled; its events are kept`);
}

async function pause(name: string, parts: Deliveries): Promise<void> {
  const isNew = await pauseReceiver(name, parts);
  say(isNew ? `${name} is paused; its events wait` : `${name} was paused already`);
}

async function resume(name: string, parts: Deliveries): Promise<void> {
  const isNew = await resumeReceiver(name, parts);
  say(isNew ? `${name} is resumed: it gets what waited` : `${name} was not paused`);
}

async function enable(name: string, parts: Deliveries): Promise<void> {
  const { before, held, dead } = await enableReceiver(name, parts);
  if (before !== 'disabled' && before !== 'enabling') return say(`${name} was not disabled`);
  const kept = `${held} held deliveries and ${dead} dead letters, then what came since`;
  const endMs = performance.now() + ENABLING_MS;
  while (performance.now() < endMs && (await parts.stores.lease.isHeld())) {
    if (!isHeld(await parts.stores.receivers.condition(name)))
      return say(`${name} is enabled: it gets ${kept}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  say(`${name} is being enabled: it will get ${kept}${await unlessRelayed(parts)}`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
