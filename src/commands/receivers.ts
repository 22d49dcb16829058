import { Command } from 'commander';
import { entitledTo } from '../queues/deliveries/entitlements.ts';
import { readBatch } from '../queues/deliveries/log-batch.ts';
import { isHeld, type ReceiverCondition } from '../store/receivers.ts';
import type { StoredReceiver } from '../store/registry.ts';
import { type Deliveries, receiverNamed, unlessRelayed, withDeliveries } from './deliveries-of.ts';
import { CONFIG_DEFAULT } from './start.ts';
import { table, utcTimeOfMs } from './table.ts';

/** The most entries of the log behind a cursor that are read to count a backlog. */
const COUNTED = 10_000;

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
    .addCommand(move('disable', 'Make no more attempts, and keep the events until it is enabled.', disable));
}

async function list(parts: Deliveries): Promise<void> {
  const receivers = (await parts.stores.registry.receivers()).sort((a, b) => (a.name < b.name ? -1 : 1));
  const rows = await Promise.all(receivers.map((receiver) => row(receiver, parts)));
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

async function row(receiver: StoredReceiver, parts: Deliveries): Promise<string[]> {
  const { name, type, removed } = receiver;
  const condition = await parts.stores.receivers.condition(name);
  const { pending, dead } = await parts.stores.deliveries.counts(name);
  const { oldestMs } = await parts.stores.deliveries.depth(name);
  const { lastSuccessAt, lastErrorAt, lastError } = condition;
  return [
    name,
    type,
    `${describeState(condition)}${removed ? ', not in the config' : ''}`,
    await backlog(receiver, { pending }, parts),
    oldestMs === null ? '' : utcTimeOfMs(oldestMs),
    await nextAttempt(name, condition, parts),
    String(dead),
    lastSuccessAt === null ? 'never' : utcTimeOfMs(lastSuccessAt),
    lastErrorAt === null ? 'never' : `${utcTimeOfMs(lastErrorAt)} ${lastError ?? ''}`,
  ];
}

/** When the receiver is tried again, where that is known: one that works and has nothing to wait for is tried at once. */
async function nextAttempt(name: string, condition: ReceiverCondition, parts: Deliveries): Promise<string> {
  if (isHeld(condition)) return '';
  const atMs = condition.notBefore ?? (await parts.stores.deliveries.nextAt(name));
  return atMs === null ? '' : utcTimeOfMs(atMs);
}

function describeState({ state, since, disabledAt, disabledBy }: ReceiverCondition): string {
  if (state === 'failing' && since !== null) return `failing since ${utcTimeOfMs(since)}`;
  if (state !== 'disabled' || disabledAt === null) return state;
  const why = { failures: 'failures', gone: 'an answer of 410', operator: 'the operator' }[
    disabledBy ?? 'operator'
  ];
  return `disabled by ${why} at ${utcTimeOfMs(disabledAt)}`;
}

/** Open deliveries, and the events behind the cursor that will become some. */
async function backlog(
  receiver: StoredReceiver,
  { pending }: { pending: number },
  parts: Deliveries,
): Promise<string> {
  const { registry, lease, events } = parts.stores;
  const cursor = await lease.cursor(receiver.name);
  const entries = cursor === null ? [] : await events.after(cursor, COUNTED);
  const { facts } = await readBatch(entries, events);
  const behind = await entitledTo(receiver, facts, { registry, directory: parts.directory });
  return `${pending + behind.length}${entries.length === COUNTED ? ' or more' : ''}`;
}

async function disable(name: string, parts: Deliveries): Promise<void> {
  await receiverNamed(name, parts);
  const before = await parts.stores.receivers.disable(name);
  say(before === 'disabled' ? `${name} was disabled already` : `${name} is disabled; its events are kept`);
}

async function enable(name: string, parts: Deliveries): Promise<void> {
  const { receivers, deliveries } = parts.stores;
  await receiverNamed(name, parts);
  const { since } = await receivers.condition(name);
  const { pending } = await deliveries.counts(name);
  const dead = since === null ? [] : await deliveries.dead(name, { sinceMs: since, count: COUNTED });
  const before = await receivers.enable(name);
  if (before !== 'disabled' && before !== 'enabling') return say(`${name} was not disabled`);
  const kept = `${pending} held deliveries and ${dead.length} dead letters, then what came since`;
  const endMs = performance.now() + ENABLING_MS;
  while (performance.now() < endMs && (await parts.stores.lease.isHeld())) {
    if (!isHeld(await receivers.condition(name))) return say(`${name} is enabled: it gets ${kept}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  say(`${name} is being enabled: it will get ${kept}${await unlessRelayed(parts)}`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
