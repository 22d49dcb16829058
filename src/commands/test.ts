import { resolve } from 'node:path';
import { Command } from 'commander';
import { CONFIG_DEFAULT, loadConfig } from '../config/file/load.ts';
import { TEST_TYPE } from '../domain/events/event-types.ts';
import { extendDirectory } from '../domain/transfers/chains.ts';
import { EXIT } from '../exit.ts';
import { testReceiver } from '../operations/test-receiver.ts';
import { VERSION } from '../version.ts';

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
  const { receivers, smtp } = config;
  const notifying = { smtp, version: VERSION, eventUrl: null, directory: extendDirectory(config) };
  const tested = await testReceiver(name, { receivers, options: notifying });
  const { outcome, reason, answer, durationMs, event } = tested;
  const lines = [`${name}: ${outcome} after ${durationMs} ms: ${reason}`, `event:  ${event}, ${TEST_TYPE}`];
  if (answer !== '') lines.push(`answer: ${answer}`);
  process.stdout.write(`${lines.join('\n')}\n`);
  if (outcome !== 'delivered') process.exitCode = EXIT.failed;
}
