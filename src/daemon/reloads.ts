import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { ConfigFile } from '../config/file/config-file.ts';
import { withoutArguments } from '../log.ts';
import type { ConfigChanges, ReloadResult } from '../operations/config-state.ts';
import type { Signals } from '../signals.ts';
import { isEmpty, RestartNeededError } from './config-changes.ts';

/** The files of the config are looked at so often, and less often where there are very many. */
const LOOK_EVERY_MS = 1_000;
const LOOK_PER_FILE_MS = 2;

/** What was refused is tried again after so long, then after twice that, and so on: its reason may pass. */
const RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 300_000;

/** So many names are logged of what has changed; of the others only how many. */
const MOST_LOGGED = 20;

/** What reloads work with. `apply` makes the daemon go on with a config, or throws and leaves all as it was. */
export type ReloadParts = {
  source: ConfigFile;
  apply: (config: Config) => Promise<ConfigChanges>;
  log: Logger;
  signals: Signals;
};

/**
 * Reads the config again when it is told to, and when its files change: all of it is applied, or nothing. One reading
 * after the other; who asks while one runs gets the next. What was refused is tried again for as long as the files stay as
 * they are, for it may have been Redis or the disk that refused.
 */
export class ConfigReloads {
  readonly #parts: ReloadParts;
  #running: Promise<ReloadResult> | null = null;
  #next: Promise<ReloadResult> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #closing = false;
  /** How often the same was refused, one after the other. */
  #refusals = 0;
  #last: ReloadResult = { atMs: Date.now(), ok: true, changes: null };

  constructor(parts: ReloadParts) {
    this.#parts = parts;
  }

  /** What came of the last reading; the first was that of the start. */
  get last(): ReloadResult {
    return this.#last;
  }

  /** Looks at the files from now on. */
  start(): void {
    if (this.#closing) return;
    const everyMs = Math.max(LOOK_EVERY_MS, this.#parts.source.size * LOOK_PER_FILE_MS);
    this.#timer = setTimeout(() => void this.#look(), everyMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const found = this.#parts.source.look();
    if (found === 'changed' || (found === 'same' && this.#isRetryDue())) await this.reload();
    this.start();
  }

  #isRetryDue(): boolean {
    return !this.#last.ok && this.#last.retryAtMs !== null && Date.now() >= this.#last.retryAtMs;
  }

  /** Reads the config and applies it. Never throws. */
  async reload(): Promise<ReloadResult> {
    if (this.#running === null) return this.#begin();
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      return this.#begin();
    });
    return this.#next;
  }

  #begin(): Promise<ReloadResult> {
    this.#running = this.#reload().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #reload(): Promise<ReloadResult> {
    const { source, apply, log, signals } = this.#parts;
    const atMs = Date.now();
    try {
      const changes = await apply(await source.load());
      if (isEmpty(changes)) log.info('config.unchanged');
      else log.info(lineOf(changes), 'config.reloaded');
      this.#refusals = 0;
      this.#last = { atMs, ok: true, changes };
    } catch (error) {
      this.#last = this.#refused(error, atMs);
    }
    signals.emit('config.reloaded', { ok: this.#last.ok, atMs });
    return this.#last;
  }

  /** The same reason is logged once, however often it is tried again. */
  #refused(error: unknown, atMs: number): ReloadResult {
    const reason = withoutArguments(error instanceof Error ? error.message : String(error));
    const isKnown = this.#isRetryDue() && !this.#last.ok && this.#last.error === reason;
    if (!this.#closing && !isKnown) this.#parts.log.error({ reason }, 'config.reload_failed');
    this.#refusals = isKnown ? this.#refusals + 1 : 0;
    const waitMs = Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** this.#refusals);
    // Nothing but a restart changes that.
    const retryAtMs = error instanceof RestartNeededError ? null : Date.now() + waitMs;
    return { atMs, ok: false, error: reason, retryAtMs };
  }

  close(): void {
    this.#closing = true;
    clearTimeout(this.#timer);
  }
}

/** Changes for the log: nothing that is empty, and no list without end. */
function lineOf({ subjects, subscriptions, receivers, settings }: ConfigChanges): object {
  const lists = { subscriptions, receivers };
  const named = Object.entries(lists).flatMap(([what, changes]) =>
    Object.entries(changes).flatMap(([how, names]) =>
      names.length === 0 ? [] : [[`${what}_${how}`, shortened(names)] as const],
    ),
  );
  return { subjects, ...Object.fromEntries(named), ...(settings.length === 0 ? {} : { settings }) };
}

function shortened(names: readonly string[]): string[] {
  if (names.length <= MOST_LOGGED) return [...names];
  return [...names.slice(0, MOST_LOGGED), `and ${names.length - MOST_LOGGED} more`];
}
