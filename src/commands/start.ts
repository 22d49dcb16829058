import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { pino } from 'pino';
import { CONFIG_DEFAULT } from '../client/address.ts';
import type { Config } from '../config/config.ts';
import { ConfigFile } from '../config/file/config-file.ts';
import { LOG_FORMATS, LOG_LEVELS, type LogConfig } from '../config/sections/process.ts';
import { Daemon } from '../daemon/daemon.ts';
import { EXIT, interrupted, reportFailure } from '../exit.ts';
import { bufferedLines, LOG_OPTIONS, standardOutput } from '../log.ts';
import { printableLine } from '../notifiers/printable.ts';
import { setV8Flags } from '../v8-flags.ts';

/** A daemon that still runs this long after the signal is cut off; the next one takes over its claims. */
const SHUTDOWN_MS = 4_500;

/** `start`: runs the daemon until a signal stops it. */
export function startCommand(): Command {
  return new Command('start')
    .description('Run the daemon: poll, compare, and deliver until SIGTERM or Ctrl-C.')
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .addOption(
      new Option(
        '--log-level <level>',
        'least severe log line to print (default: log.level of the config, else info)',
      ).choices(LOG_LEVELS),
    )
    .addOption(
      new Option(
        '--log-format <format>',
        'json, or lines for people (default: log.format of the config, else pretty on a terminal)',
      ).choices(LOG_FORMATS),
    )
    .action(start);
}

type StartOptions = { config: string; logLevel?: LogConfig['level']; logFormat?: LogConfig['format'] };

async function start(options: StartOptions): Promise<void> {
  // Set before anything else: without a listener the signal ends the process.
  let reload = (): void => undefined;
  process.on('SIGHUP', () => reload());
  const source = new ConfigFile(resolve(options.config), process.env);
  const config = await source.load();
  const log = pino(
    { ...LOG_OPTIONS, level: options.logLevel ?? config.log.level },
    bufferedLines(await logSink(options.logFormat ?? config.log.format)),
  );
  const stop = interrupted();
  const onApplied = (next: Config): void => {
    log.level = options.logLevel ?? next.log.level;
  };
  const daemon = new Daemon({ config, log, source, onApplied });
  const starting = daemon.start();
  void setV8Flags(starting);
  reload = () => {
    starting.then(() => daemon.reload()).catch(() => undefined);
  };
  // A daemon that waits for Redis can be stopped as well.
  const reason = await Promise.race([stop.wait, starting.then(() => null)]).catch(async (error: unknown) => {
    await daemon.close();
    throw error;
  });
  const ended = reason ?? (await Promise.race([stop.wait, daemon.failure]));
  const failure = ended instanceof Error ? ended : null;
  const code = failure === null ? EXIT.done : reportFailure(failure);
  log.info(failure === null ? { signal: ended } : { reason: failure.message }, 'daemon.stopping');
  setTimeout(() => process.exit(code), SHUTDOWN_MS).unref();
  await daemon.close();
  process.exit(code);
}

/** Destination of log lines: stdout, formatted for people where it is a terminal. */
async function logSink(format: LogConfig['format']): Promise<{ write(text: string): unknown }> {
  // No key could end it any more.
  const out = standardOutput(() => process.kill(process.pid, 'SIGTERM'));
  if ((format ?? (process.stdout.isTTY ? 'pretty' : 'json')) === 'json') return out;
  return await prettyLines(out, { colour: process.stdout.isTTY && process.stdout.hasColors() });
}

const LONGEST = 20_000;

async function prettyLines(
  sink: { write(text: string): unknown },
  { colour }: { colour: boolean },
): Promise<{ write(text: string): void }> {
  const { prettyFactory } = await import('pino-pretty');
  const pretty = prettyFactory({
    colorize: colour,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    errorLikeObjectKeys: ['error'],
  });
  return {
    write: (text) => {
      const lines = text.split('\n').filter((line) => line !== '');
      sink.write(lines.map((line) => pretty(printable(JSON.parse(line)))).join(''));
    },
  };
}

/** Removes from quoted foreign text the characters that move a terminal's cursor. */
function printable(value: unknown): unknown {
  if (typeof value === 'string') {
    return value
      .split('\n')
      .map((line) => printableLine(line, LONGEST))
      .join('\n');
  }
  if (Array.isArray(value)) return value.map(printable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [printableLine(name), printable(one)]),
  );
}
