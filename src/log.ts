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
