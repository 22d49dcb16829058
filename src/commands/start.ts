import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { pino } from 'pino';
import { ConfigFile } from '../config/file/config-file.ts';
import { Daemon } from '../daemon/daemon.ts';
import { EXIT, interrupted, reportFailure } from '../exit.ts';
import { bufferedLines, loggedError } from '../log.ts';

export const CONFIG_DEFAULT = './intentwatch.yaml';

/** A daemon that is still there after this long at shutdown is cut off: what it held is handed to the next one. */
const SHUTDOWN_MS = 4_500;

/** `start`: runs the daemon until it is told to stop. */
export function startCommand(): Command {
  return new Command('start')
    .description('Run the daemon: poll, compare, and deliver until SIGTERM or Ctrl-C.')
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .addOption(
      new Option('--log-level <level>', 'least severe log line to print')
        .choices(['debug', 'info', 'warn', 'error'])
        .default('info'),
    )
    .action(start);
}

async function start(options: { config: string; logLevel: string }): Promise<void> {
  // From the first moment on: without a listener the signal ends the process.
  let reload = (): void => undefined;
  process.on('SIGHUP', () => reload());
  const source = new ConfigFile(resolve(options.config), process.env);
  const config = await source.load();
  const log = pino(
    { level: options.logLevel, base: null, serializers: { error: loggedError } },
    bufferedLines(pino.destination({ dest: 1, sync: true })),
  );
  const stop = interrupted();
  const daemon = new Daemon({ config, log, source });
  const starting = daemon.start();
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
