import { Command, InvalidArgumentError } from 'commander';
import { parseDuration } from '../src/config/fields/fields.ts';

/** `demo`: runs the main job on embedded defaults, with all other services on this machine. */
export function demoCommand(): Command {
  return new Command('demo')
    .description(
      'Watch a local upstream: transfers start, fill, settle and refund, and become webhooks and mails.',
    )
    .option('--for <duration>', 'end after this time (20, 20s, 2m) and account for every transition', seconds)
    .option('--seed <number>', 'seed of the local upstream', Number, 1)
    .action(demo);
}

function seconds(text: string): number {
  const ms = /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : parseDuration(text);
  if (ms === null) throw new InvalidArgumentError('expected seconds or a duration such as 20s or 2m');
  return ms;
}

async function demo(options: { for?: number; seed: number }): Promise<void> {
  // Loaded only now: a list of the commands does not need the daemon.
  const { runDemo } = await import('./run.ts');
  await runDemo(options);
}
