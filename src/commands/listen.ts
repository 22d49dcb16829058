import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { link, open, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { z } from 'zod';
import type { ApiClient } from '../client/api-client.ts';
import { type FollowedEvent, followDaemon } from '../client/follow.ts';
import { isLoopback } from '../config/fields/http.ts';
import { formatHmacSecret, parseSigningSecret, SECRET_EXPECTED } from '../config/fields/signing-secret.ts';
import { buildReceiver, receiverSchema } from '../config/sections/receiver.ts';
import { codeOf } from '../errors.ts';
import { BadSettingError, interrupted } from '../exit.ts';
import { makeFolder } from '../files.ts';
import { createNotifier } from '../notifiers/create-notifier.ts';
import type { AttemptResult, Notifier } from '../notifiers/notifier.ts';
import { Secret } from '../secret.ts';
import { VERSION } from '../version.ts';
import { clientOf, type DaemonOptions, remark, timeArg, withDaemon, writeLine } from './daemon.ts';
import { connectionRemarks, eventText } from './events.ts';
import { subjectOption } from './find-subject.ts';
import { screenOf, tinted } from './table.ts';

const STATE = z.object({ secret: z.string().refine((text) => parseSigningSecret(text) !== null) });
const PLACE = z.object({ from: z.string(), to: z.string(), cursor: z.string() });

type Forwarded = { from: string; to: string };

const KEY_BYTES = 32;

/** Default file for a listener's secret and places. */
export function listenFile({ XDG_STATE_HOME: home }: NodeJS.ProcessEnv): string {
  const folder = home === undefined || home === '' ? join(homedir(), '.local', 'state') : home;
  return join(folder, 'intentwatch', 'listen.json');
}

/**
 * State of a listener between runs, in files that only its user can read. It holds the signing secret, made at the first run
 * and shared with no daemon, and the last forwarded places. The place of each forwarding is a file of its own, so that
 * listeners can run side by side.
 */
export class ListenState {
  readonly file: string;
  readonly secret: Secret;

  private constructor(file: string, secret: string) {
    this.file = file;
    this.secret = new Secret(secret);
  }

  /** Reads the file, or makes it with a new secret. When several make it at once, all get the secret of the first. */
  static async open(file: string): Promise<ListenState> {
    const stored = await readStored(file);
    if (stored !== null) return new ListenState(file, parseStored(STATE, stored, file).secret);
    const part = await writePart(file, { secret: formatHmacSecret(randomBytes(KEY_BYTES)) });
    try {
      await link(part, file);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    } finally {
      await rm(part);
    }
    return ListenState.open(file);
  }

  /** Cursor behind the last forwarded event; null where nothing was forwarded. */
  async cursor(forwarding: Forwarded): Promise<string | null> {
    const file = this.#placeOf(forwarding);
    const text = await readStored(file);
    return text === null ? null : parseStored(PLACE, text, file).cursor;
  }

  async advance({ from, to, cursor }: z.infer<typeof PLACE>): Promise<void> {
    const file = this.#placeOf({ from, to });
    await rename(await writePart(file, { from, to, cursor }), file);
  }

  #placeOf({ from, to }: Forwarded): string {
    return `${this.file}.${createHash('sha256').update(`${from} ${to}`).digest('hex').slice(0, 16)}`;
  }
}

/** Writes a new version beside a file. The file is replaced whole or not at all, as a listener can be killed at any time. */
async function writePart(file: string, content: object): Promise<string> {
  await makeFolder(dirname(file));
  const part = `${file}.${randomUUID()}`;
  const handle = await open(part, 'wx', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(content, null, 2)}\n`);
  } finally {
    await handle.close();
  }
  return part;
}

async function readStored(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  });
}

function parseStored<T>(schema: z.ZodType<T>, text: string, file: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new BadSettingError(
      `${file}: found something else, expected what listen writes there; remove it to begin anew`,
    );
  }
}

type ListenOptions = DaemonOptions & {
  forwardTo?: string;
  type?: string[];
  subject?: string;
  since?: string;
  state?: string;
  printSecret?: true;
};

const RETRY_MS = 1_000;

/** `listen`: forwards the events of a running daemon to a program on this machine, signed. */
export function listenCommand(): Command {
  return withDaemon(
    new Command('listen')
      .description(
        'Forward the events of a running daemon to a program on this machine, signed, until Ctrl-C.',
      )
      .option('--forward-to <url>', 'where the program listens, such as http://127.0.0.1:8000/hooks')
      .option('--print-secret', 'print the secret that they are signed with, and end')
      .option('--type <glob...>', 'of these types, with * and a leading !')
      .option('--subject <id>', 'about this subject: its id, a hash, or metadata as key=value')
      .option('--since <time>', 'from then on, in the place of where it ended last', timeArg)
      .option(
        '--state <file>',
        'where secret and place are stored (default: intentwatch/listen.json in $XDG_STATE_HOME or ~/.local/state)',
      ),
  ).action(async (options: ListenOptions) => {
    const state = await ListenState.open(options.state ?? listenFile(process.env));
    const secret = secretOf(process.env) ?? state.secret;
    if (options.printSecret === true) writeLine(secret.reveal());
    else {
      const target = targetOf(options.forwardTo);
      await forward({ client: await clientOf(options), state, secret, target }, options);
    }
  });
}

/** The user's own secret, which goes before the generated one. */
function secretOf({ INTENTWATCH_LISTEN_SECRET: text }: NodeJS.ProcessEnv): Secret | null {
  if (text === undefined || text === '') return null;
  if (parseSigningSecret(text) !== null) return new Secret(text);
  throw new BadSettingError(`INTENTWATCH_LISTEN_SECRET: found something else, expected ${SECRET_EXPECTED}`);
}

/** Accepts this machine only: for any other, the config needs a receiver. */
function targetOf(text: string | undefined): string {
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && isLoopback(url)) return url.href;
  throw new Error(
    '--forward-to: expected a URL of this machine such as http://127.0.0.1:8000/hooks; a receiver of the config is for others',
  );
}

type Forwarding = { client: ApiClient; state: ListenState; secret: Secret; target: string };

async function forward({ client, state, secret, target }: Forwarding, options: ListenOptions): Promise<void> {
  const stop = new AbortController();
  const signals = interrupted();
  void signals.wait.then(() => stop.abort());
  const notifier = notifierOf(target, secret);
  const place = { from: client.url, to: target };
  const cursor = options.since === undefined ? await state.cursor(place) : null;
  const onStart = (): void => {
    remark(
      `forwarding the events of ${client.url} to ${target}, ${cursor === null ? '' : 'from where it ended last, '}signed`,
    );
    const file = options.state === undefined ? '' : ` --state '${options.state.replaceAll("'", "'\\''")}'`;
    remark(
      `the secret to verify them with: export WEBHOOK_SECRET="$(intentwatch listen --print-secret${file})"`,
    );
  };
  try {
    const wanted = { ...options, subject: await subjectOption(client, options.subject), cursor };
    for await (const followed of followDaemon(client, wanted, {
      signal: stop.signal,
      onStart,
      ...connectionRemarks(client.url),
    })) {
      const result = await attempt(followed, { notifier, target, signal: stop.signal });
      if (result === null) break;
      show(followed, result, options);
      await state.advance({ ...place, cursor: followed.cursor });
    }
  } finally {
    await notifier.close();
    signals.release();
  }
}

/** Notifier of a daemon's webhook receiver, so that requests are the same as those to a receiver. */
function notifierOf(url: string, secret: Secret): Notifier {
  const item = receiverSchema.parse({
    name: 'listen',
    type: 'webhook',
    url,
    secrets: [secret.reveal()],
    allowPrivateNetwork: true,
    allowInsecure: true,
  });
  return createNotifier(buildReceiver(item, { tls: null }), { smtp: null, version: VERSION, eventUrl: null });
}

/** Retries until the program answers, with any status; null when it was stopped. */
async function attempt(
  { event }: FollowedEvent,
  { notifier, target, signal }: { notifier: Notifier; target: string; signal: AbortSignal },
): Promise<AttemptResult | null> {
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const result = await notifier.deliver(event, { signal, nowMs: Date.now() }).catch((error: unknown) => {
      if (signal.aborted) return null;
      throw error;
    });
    if (result === null || result.httpStatus !== null) return result;
    if (isFirst) remark(`${target}: ${result.reason}; trying again until it answers`);
    await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
  }
  return null;
}

function show({ event, raw }: FollowedEvent, result: AttemptResult, { json }: ListenOptions): void {
  const { outcome, httpStatus, reason, answer, durationMs } = result;
  if (json === true) {
    writeLine(JSON.stringify({ event: raw, outcome, httpStatus, reason, answer, durationMs }));
    return;
  }
  const details = `${reason}${answer === '' ? '' : `: ${answer}`} (${durationMs} ms)`;
  writeLine(`${eventText(event)}\n    ${tinted(outcome, screenOf())}  ${details}`);
}
