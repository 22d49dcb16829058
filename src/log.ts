import { writeSync } from 'node:fs';
import { type DestinationStream, type LoggerOptions, pino } from 'pino';

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
 * script and every argument, and Redis quotes the first of them in some messages. Other messages quote the upstream.
 */
export function loggedError(error: Error): LoggedError {
  const { type, message, stack } = pino.stdSerializers.err(error);
  const shown = (text: string): string => withoutPrivateWords(withoutArguments(text));
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const command = commandOf(error);
  return {
    type,
    message: shown(message),
    ...(stack === undefined ? {} : { stack: shown(stack) }),
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

/** How the daemon's log is written; the level is its user's choice. */
export const LOG_OPTIONS = {
  base: null,
  serializers: { error: loggedError },
  formatters: {
    log: (line) => Object.fromEntries(Object.entries(line).map(([key, value]) => [key, redacted(value)])),
  },
} as const satisfies LoggerOptions;

const ADDRESS = '[address]';
const SECRET = '[secret]';

/** What ends a word of a log line. */
const WORD = /[^\s<>"'=:,;/]+/g;

/**
 * How secrets begin whose makers mark them so: of webhooks, payment services, code hosts, chats, clouds, signed tokens. A
 * mark may follow any punctuation. That of a signed token follows none of its own characters: else a word would be searched
 * anew at each mark in it.
 */
const SECRET_START =
  /(?:^|[^A-Za-z0-9])(?:(?:whsec|whsk|sk|rk|ghp|gho|ghs|ghr|github_pat|npm)_|glpat-|xox[a-z]-|(?:AKIA|ASIA)[A-Z0-9])|(?:^|[^\w-])eyJ[\w-]+\./;

/**
 * A value of a log line, however deep, without mail addresses and words that are marked as secrets: the upstream may send
 * either, also as the name of a member. Errors have a serializer of their own.
 */
function redacted(value: unknown): unknown {
  if (typeof value === 'string') return withoutPrivateWords(value);
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== 'object' || value === null) return value;
  if (![Object.prototype, null].includes(Object.getPrototypeOf(value))) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [withoutPrivateWords(key), redacted(one)]),
  );
}

/** A text without mail addresses and words that are marked as secrets. Takes time linear in its length. */
export function withoutPrivateWords(text: string): string {
  return text.replace(WORD, (word) => {
    const at = word.indexOf('@');
    if (at > 0 && at < word.length - 1) return ADDRESS;
    return SECRET_START.test(word) ? SECRET : word;
  });
}

/** The longest word of the upstream that a log line shows, in characters. */
const LONGEST_WORD = 64;

/**
 * A status of the upstream as a log line shows it. Those of the interface are letters, with hyphens and underscores
 * between; anything else may be a secret. The event itself has it as it came.
 */
export function loggedStatus(status: string | null): string | null {
  if (status === null) return null;
  const shown = withoutPrivateWords(status);
  if (shown !== status) return shown;
  return status === '' || (status.length <= LONGEST_WORD && PLAIN_WORD.test(status)) ? status : SECRET;
}

const PLAIN_WORD = /^[a-z]+(?:[-_ ][a-z]+)*$/i;

/** A type of event as a log line shows it: its word is made from the status, or from that of a failure. */
export function loggedType(type: string, status: string | null): string {
  const dot = type.indexOf('.');
  const isPlain =
    loggedStatus(status) === status && loggedStatus(type.slice(dot + 1)) === type.slice(dot + 1);
  return isPlain ? type : `${type.slice(0, dot + 1)}${SECRET}`;
}

/** The place where text goes for good before `write` returns. */
type Sink = { write(text: string): unknown };

/** So much waits for a disk that is full; what comes beyond that is left out. */
const MOST_WAITING_BYTES = 16_777_216;

/**
 * Writes to stdout. A disk that is full ends nobody: what cannot be written waits, and stderr says so once. `onGone` is
 * called when the terminal has gone.
 */
export function standardOutput(onGone: () => void): Sink {
  const out = pino.destination({ dest: 1, sync: true, maxLength: MOST_WAITING_BYTES });
  let isReported = false;
  out.on('error', (error: Error) => {
    if (isReported) return;
    isReported = true;
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
