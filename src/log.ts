import { writeSync } from 'node:fs';
import { type DestinationStream, pino } from 'pino';

/** What a log shows of an error. */
type LoggedError = {
  type: string;
  message: string;
  stack?: string;
  code?: string;
  /** The name of the Redis command that failed, without its arguments. */
  command?: string;
};

/**
 * An error as it is logged: only what is known to be harmless. The Redis client hangs the command on an error, with the
 * script and every argument, and Redis quotes the first of them in some messages.
 */
export function loggedError(error: Error): LoggedError {
  const { type, message, stack } = pino.stdSerializers.err(error);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const command = commandOf(error);
  return {
    type,
    message: withoutArguments(message),
    ...(stack === undefined ? {} : { stack: withoutArguments(stack) }),
    ...(code === undefined ? {} : { code }),
    ...(command === undefined ? {} : { command }),
  };
}

function commandOf(error: Error): string | undefined {
  const command: unknown = 'command' in error ? error.command : undefined;
  if (typeof command !== 'object' || command === null || !('name' in command)) return undefined;
  return typeof command.name === 'string' ? command.name : undefined;
}

/** What Redis says of a command that it does not know, without the arguments that it quotes. */
export function withoutArguments(text: string): string {
  return text.replaceAll(/, with args beginning with:.*/g, '');
}

/** Where text goes for good before `write` returns. */
type Sink = { write(text: string): unknown };

/** So much waits for a disk that is full; what comes beyond that is left out. */
const MOST_WAITING_BYTES = 16_777_216;

/**
 * Writes to stdout. A disk that is full ends nobody: what cannot be written waits, and stderr says so once. `onGone` is
 * called when the terminal has gone.
 */
export function standardOutput(onGone: () => void): Sink {
  const out = pino.destination({ dest: 1, sync: true, maxLength: MOST_WAITING_BYTES });
  let isTold = false;
  out.on('error', (error: Error) => {
    if (isTold) return;
    isTold = true;
    const code = 'code' in error ? String(error.code) : error.name;
    if (code === 'EIO') return onGone();
    try {
      writeSync(2, `intentwatch: log lines cannot be written (${code}); they wait\n`);
    } catch {
      // It is full as well.
    }
  });
  return out;
}

/**
 * Has the log lines of one turn of the event loop leave together, before the next turn or the end of the process: a write
 * of its own for each costs a busy daemon as much as the deliveries that they tell of.
 */
export function bufferedLines(sink: Sink): DestinationStream {
  let lines = '';
  let isScheduled = false;
  const flush = (): void => {
    isScheduled = false;
    if (lines === '') return;
    const text = lines;
    lines = '';
    sink.write(text);
  };
  process.on('exit', flush);
  return {
    write: (line) => {
      lines += line;
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(flush);
    },
  };
}
