import { resolve } from 'node:path';
import { Command } from 'commander';
import { CONFIG_DEFAULT } from '../client/address.ts';
import type { Config } from '../config/config.ts';
import { renderProblem } from '../config/file/errors.ts';
import { loadConfig } from '../config/file/load.ts';
import { TEST_TYPE } from '../domain/events/event-types.ts';
import { subjectsOf } from '../domain/subjects/subscription.ts';
import { extendDirectory } from '../domain/transfers/chains.ts';
import { EXIT } from '../exit.ts';
import { printableLine } from '../notifiers/printable.ts';
import { testReceiver } from '../operations/test-receiver.ts';
import { VERSION } from '../version.ts';
import {
  booksChecks,
  chainChecks,
  count,
  postgresChecks,
  redisCheck,
  runCheck,
  smtpCheck,
} from './check-live.ts';
import { upstreamChecks } from './check-upstream.ts';

/** `check`: checks a config file; with `--live` also connects to each server that it names. */
export function checkCommand(): Command {
  return new Command('check')
    .description(
      'Check a config file; with --live also the upstream, RPC endpoints, Redis, SMTP and Postgres that it names.',
    )
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .option('--live', 'also check the upstream, the RPC endpoints, Redis, SMTP and Postgres')
    .action(check);
}

async function check(options: { config: string; live?: true }): Promise<void> {
  const config = await loadConfig(resolve(options.config), process.env);
  const writeLine = (line: string): void => void process.stdout.write(`${line}\n`);
  writeLine(`${printableLine(options.config)}: ok, ${describe(config)}`);
  for (const warning of config.warnings) writeLine(`warning: ${printableLine(renderProblem(warning))}`);
  if (!options.live) return;
  const checks = [
    ...upstreamChecks(config),
    redisCheck(config),
    ...chainChecks(config),
    smtpCheck(config),
    ...booksChecks(config),
    ...postgresChecks(config),
  ];
  const results = await Promise.all(checks.map(runCheck));
  // An answer, or a path in the config, may hold control characters for the terminal.
  const findings = results.map((finding) => ({
    ...finding,
    name: printableLine(finding.name),
    detail: printableLine(finding.detail),
  }));
  const width = Math.max(...findings.map((finding) => finding.name.length));
  for (const { name, ok, detail } of findings)
    writeLine(`${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(width)}  ${detail}`);
  if (findings.some((finding) => !finding.ok)) process.exitCode = EXIT.tryAgain;
  if (findings.some((finding) => finding.refused === true)) process.exitCode = EXIT.badConfig;
}

function describe(config: Config): string {
  const total = config.subscriptions.reduce((sum, subscription) => sum + subjectsOf(subscription).length, 0);
  return [
    count(config.receivers.length, 'receiver'),
    count(config.subscriptions.length, 'subscription'),
    count(total, 'subject'),
  ].join(', ');
}

/** `test`: sends a test event to a receiver as the daemon would, and shows the answer. */
export function testCommand(): Command {
  return new Command('test')
    .description('Send an intentwatch.test event to a receiver, signed, once, and show the answer.')
    .argument('<receiver>', 'a receiver of the config; the daemon need not run')
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .action(sendTest);
}

async function sendTest(name: string, options: { config: string }): Promise<void> {
  const config = await loadConfig(resolve(options.config), process.env);
  const { receivers, smtp } = config;
  // `directory`: names of chains and tokens, for messages.
  const notifierOptions = { smtp, version: VERSION, eventUrl: null, directory: extendDirectory(config) };
  const tested = await testReceiver(name, { receivers, options: notifierOptions });
  const { outcome, reason, answer, durationMs, event } = tested;
  const lines = [`${name}: ${outcome} after ${durationMs} ms: ${reason}`, `event:  ${event}, ${TEST_TYPE}`];
  if (answer !== '') lines.push(`answer: ${answer}`);
  process.stdout.write(`${lines.join('\n')}\n`);
  if (outcome !== 'delivered') process.exitCode = EXIT.failed;
}
