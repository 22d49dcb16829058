import { resolve } from 'node:path';
import { Command } from 'commander';
import { loadConfig } from '../config/file/load.ts';
import { makeTestEvent } from '../domain/events/make-event.ts';
import { extendDirectory } from '../domain/transfers/chains.ts';
import { EXIT } from '../exit.ts';
import { createNotifier } from '../notifiers/create-notifier.ts';
import { VERSION } from '../version.ts';
import { CONFIG_DEFAULT } from './start.ts';

/** `test`: sends an event to a receiver as the daemon does, and shows the answer. */
export function testCommand(): Command {
  return new Command('test')
    .description('Send an intentwatch.test event to a receiver, signed, once, and show the answer.')
    .argument('<receiver>', 'a receiver of the config; the daemon need not run')
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .action(test);
}

async function test(name: string, options: { config: string }): Promise<void> {
  const config = await loadConfig(resolve(options.config), process.env);
  const receiver = config.receivers.find((one) => one.name === name);
  if (receiver === undefined) {
    const names = config.receivers.map((one) => one.name).join(', ');
    throw new Error(`found the receiver "${name}", expected one of ${names}`);
  }
  const notifier = createNotifier(receiver, {
    smtp: config.smtp,
    version: VERSION,
    eventUrl: null,
    directory: extendDirectory(config),
  });
  try {
    const nowMs = Date.now();
    const event = makeTestEvent(name, nowMs);
    const { signal } = new AbortController();
    const { outcome, reason, answer, durationMs } = await notifier.deliver(event, { signal, nowMs });
    const lines = [
      `${name}: ${outcome} after ${durationMs} ms: ${reason}`,
      `event:  ${event.id}, ${event.type}`,
    ];
    if (answer !== '') lines.push(`answer: ${answer}`);
    process.stdout.write(`${lines.join('\n')}\n`);
    if (outcome !== 'delivered') process.exitCode = EXIT.failed;
  } finally {
    await notifier.close();
  }
}
