import { writeSync } from 'node:fs';
import { type DestinationStream, type LoggerOptions, pino } from 'pino';
import { CACHES } from './domain/caches.ts';
import { codeOf } from './errors.ts';

type LoggedError = {
  type: string;
  message: string;
  stack?: string;
  code?: string;
  /** Name of the failed Redis command, without its arguments. */
  command?: string;
};

/** The harmless part of an error. The Redis client attaches the script and all arguments, and messages quote the upstream. */
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

/** Removes the arguments that Redis quotes in its message about an unknown command. */
export function withoutArguments(text: string): string {
  return text.replaceAll(/, with args beginning with:.*/g, '');
}

export const LOG_OPTIONS = {
  base: null,
  serializers: { error: loggedError },
  formatters: {
    log: (line) => {
      const shown: Record<string, unknown> = {};
      for (const key of Object.keys(line)) shown[key] = redacted(line[key]);
      return shown;
    },
  },
} as const satisfies LoggerOptions;

const ADDRESS = '[address]';
const SECRET = '[secret]';

const WORD = /[^\s<>"'=:,;/]+/g;

/**
 * Prefixes by which issuers mark secrets: of webhooks, payment services, code hosts, chats, clouds, signed tokens. A prefix
 * may follow any punctuation. That of a signed token follows none of its own characters: otherwise the search would restart
 * at each prefix in a text.
 */
const SECRET_START =
  /(?:^|[^A-Za-z0-9])(?:(?:whsec|whsk|sk|rk|ghp|gho|ghs|ghr|github_pat|npm)_|glpat-|xox[a-z]-|(?:AKIA|ASIA)[A-Z0-9])|(?:^|[^\w-])eyJ[\w-]+\./;

/** Removes mail addresses and marked secrets at any depth, also from names of members. Errors have their own serializer. */
function redacted(value: unknown): unknown {
  if (typeof value === 'string') return withoutPrivateWords(value);
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== 'object' || value === null) return value;
  if (![Object.prototype, null].includes(Object.getPrototypeOf(value))) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [withoutPrivateWords(key), redacted(one)]),
  );
}

/** Removes mail addresses and marked secrets from a text, in time linear in its length. */
export function withoutPrivateWords(text: string): string {
  // Nearly all texts have none, and are not split: a prefix may follow each separator of words.
  if (!text.includes('@') && !SECRET_START.test(text)) return text;
  return text.replace(WORD, (word) => {
    const at = word.indexOf('@');
    if (at > 0 && at < word.length - 1) return ADDRESS;
    return SECRET_START.test(word) ? SECRET : word;
  });
}

/** Longest text of the upstream that a log line shows, in characters. */
const LONGEST_WORD = 64;

/** A status of the upstream for a log line: any text but letters, hyphens and underscores may be a secret, and is hidden. */
export function loggedStatus(status: string | null): string | null {
  if (status === null) return null;
  const shown = withoutPrivateWords(status);
  if (shown !== status) return shown;
  return status === '' || (status.length <= LONGEST_WORD && PLAIN_WORD.test(status)) ? status : SECRET;
}

const PLAIN_WORD = /^[a-z]+(?:[-_ ][a-z]+)*$/i;

/** A type of event for a log line: the type contains the status, or the status of a failure. */
export function loggedType(type: string, status: string | null): string {
  const dot = type.indexOf('.');
  const isPlain =
    loggedStatus(status) === status && loggedStatus(type.slice(dot + 1)) === type.slice(dot + 1);
  return isPlain ? type : `${type.slice(0, dot + 1)}${SECRET}`;
}

/** A destination that has stored the text when `write` returns. */
type Sink = { write(text: string): unknown };

/** Writes to stdout. While a disk is full, lines wait and stderr reports it once. `onGone`: the terminal has gone. */
export function standardOutput(onGone: () => void): Sink {
  const out = pino.destination({ dest: 1, sync: true, maxLength: CACHES.logLines.bytes });
  let isReported = false;
  out.on('error', (error: Error) => {
    if (isReported) return;
    isReported = true;
    const code = codeOf(error) ?? error.name;
    if (code === 'EIO') return onGone();
    try {
      writeSync(2, `intentwatch: log lines cannot be written (${code}); they wait\n`);
    } catch {
      // stderr is full as well.
    }
  });
  return out;
}

/** Writes the lines of one turn of the event loop together: single writes cost as much as the deliveries they report. */
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
