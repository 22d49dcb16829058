import { Command } from 'commander';
import { EXIT, interrupted } from '../exit.ts';
import type { Moment } from '../operations/moment.ts';
import { hasEnded, resendTime } from '../operations/resend.ts';
import { isHeld } from '../store/receivers.ts';
import type { Replay } from '../store/replays.ts';
import { type Deliveries, unlessRelayed, withDeliveries } from './deliveries-of.ts';
import { moment } from './moment.ts';
import { CONFIG_DEFAULT } from './start.ts';
import { utcTimeOfMs } from './table.ts';

type Options = { config: string; since: Moment; until?: Moment; type?: string[]; wait: boolean };

const LOOK_EVERY_MS = 250;
const SAY_EVERY_MS = 1_000;

/** `replay`: sends the events of a time to a receiver once more. */
export function replayCommand(): Command {
  return new Command('replay')
    .description('Send the events of a time to a receiver once more, from the event log, under their ids.')
    .argument('<receiver>', 'who gets them')
    .requiredOption(
      '--since <time>',
      'from when on: a time like 2026-11-20T10:00:00Z, or a span like 2h',
      moment,
    )
    .option('--until <time>', 'up to when, in the same way (default: now)', moment)
    .option('--type <glob...>', 'only these types, with * and a leading ! (repeatable)')
    .option('--no-wait', 'do not wait until all are delivered')
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .action(async (receiver: string, options: Options) =>
      withDeliveries(options.config, (parts) => replay(receiver, options, parts)),
    );
}

async function replay(name: string, options: Options, parts: Deliveries): Promise<void> {
  const { since, until = null, type = null } = options;
  const { id, sinceMs, untilMs } = await resendTime({ name, since, until, types: type, key: null }, parts);
  say(
    `replay ${id}: events of ${utcTimeOfMs(sinceMs)} to ${utcTimeOfMs(untilMs)} to ${name}${await unlessRelayed(parts)}`,
  );
  if (options.wait) await watch(id, parts);
}

/** Says how far a replay is until all of its deliveries have ended. It goes on without us. */
async function watch(id: string, { stores: { replays, receivers } }: Deliveries): Promise<void> {
  const stop = interrupted();
  let stopped = false;
  void stop.wait.then(() => {
    stopped = true;
  });
  let shown = { text: '', atMs: 0 };
  for (;;) {
    const now = await replays.read(id);
    if (now === null) throw new Error(`replay ${id} is past its retention`);
    if (hasEnded(now)) {
      say(`${now.opened} events sent once more: ${now.delivered} delivered, ${now.dead} dead letters`);
      if (now.dead > 0) process.exitCode = EXIT.failed;
      break;
    }
    if (stopped) {
      say(`${progress(now)}; it goes on by itself`);
      break;
    }
    const held = isHeld(await receivers.condition(now.receiver))
      ? `; ${now.receiver} is disabled or paused`
      : '';
    const text = `${progress(now)}${held}`;
    if (text !== shown.text && performance.now() - shown.atMs >= SAY_EVERY_MS) {
      say(text);
      shown = { text, atMs: performance.now() };
    }
    await Promise.race([stop.wait, new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))]);
  }
  stop.release();
}

function progress({ state, cursor, read, opened, delivered, dead }: Replay): string {
  const where = state === 'opened' ? 'the end' : utcTimeOfMs(Number(cursor.split('-')[0]));
  return `log read to ${where} (${read} entries), ${opened} events queued, ${delivered} delivered, ${dead} dead`;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
