import type { Logger } from 'pino';
import type { Config, Receiver, ServerConfig } from '../config/config.ts';
import { ExpiringSecret } from '../config/fields/signing-secret.ts';
import type { ConfigFile } from '../config/file/config-file.ts';
import { Duty } from '../duty.ts';
import { messageOf } from '../errors.ts';
import { withoutArguments } from '../log.ts';
import type {
  ConfigChanges,
  ConfigRemoval,
  FileState,
  ReloadRequest,
  ReloadResult,
} from '../operations/config-state.ts';
import { RefusedError } from '../operations/operation.ts';
import { isoTime } from '../operations/time.ts';
import type { Secret } from '../secret.ts';
import type { Signals } from '../signals.ts';
import type { ConfirmationStore } from '../store/confirmations.ts';
import {
  changesBetween,
  changesLine,
  isEmpty,
  largeRemoval,
  namesOf,
  RestartNeededError,
  removalLine,
} from './config-changes.ts';

/** Interval of checking the config's files, which is longer for very many files. */
const CHECK_EVERY_MS = 1_000;
const CHECK_PER_FILE_MS = 2;

/** Wait before a refused file is tried again, twice as long each time: its reason may pass. */
const RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 300_000;

/**
 * Dependencies of reloads. `apply` makes the daemon use a config, or throws and changes nothing; with `isNewest` the config
 * applies to all processes. `running` is the last applied config; `confirmations` are in Redis.
 */
type ReloadDeps = {
  source: ConfigFile;
  running: () => Config;
  apply: (config: Config, options: { isNewest: boolean }) => Promise<ConfigChanges>;
  confirmations: () => ConfirmationStore;
  log: Logger;
  signals: Signals;
};

/** `isRequested`: somebody requested to apply the file; `confirm`: digest of a confirmed file that may remove much. */
type Request = { isRequested: boolean; confirm?: string };

/**
 * State of the config file against the running config:
 *
 *   running  it is the running config
 *   changed  it differs from that, and nobody has requested to apply it (`reload.mode: manual`)
 *   held     it would remove much (`reload.confirmAfter`), and waits for its confirmation
 *   refused  it cannot be read or applied; tried again by itself, except in mode manual and where it needs a restart
 *
 * Each read of it sets the state, whatever it was before:
 *
 *   Read       When                                                                                     Then
 *   applied    requested, or in mode watch: it removes little, or its digest is confirmed, or it is     running
 *              the same as the running config
 *   large      likewise, but it removes much, and its digest is not confirmed                           held
 *   same       in mode manual and not requested: it has the same effect as the running config           running
 *   noticed    in mode manual and not requested: it has another effect, or cannot be read; it is not    changed
 *              the file that is held
 *   failed     it cannot be read, applied or confirmed: Redis may refuse that as well                   refused
 *
 * It is read on request (`intentwatch reload`, SIGHUP), when its files changed, when a refused one is due again, and
 * when another process confirmed the held one. Only `#move` sets the state.
 *
 * Only `applied` changes the running config; `large` ends secrets that the file ends.
 */
export class ConfigReloads {
  readonly #deps: ReloadDeps;
  /** Queue of reads, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The next requested read that has not begun; requests made meanwhile share it. */
  #next: Promise<FileState> | null = null;
  readonly #checking: Duty;
  #refusals = 0;
  #state: FileState = { state: 'running', ok: true, atMs: Date.now(), changes: null, removal: null };

  constructor(deps: ReloadDeps) {
    this.#deps = deps;
    this.#checking = new Duty({
      everyMs: CHECK_EVERY_MS,
      isShared: true,
      run: async () => {
        await this.check();
        return this.#wait();
      },
      onError: (error) => {
        deps.log.error({ reason: reasonOf(error) }, 'config.reload_failed');
        return this.#wait();
      },
    });
  }

  /** State of the file against the running config; the start made the first read. */
  get state(): FileState {
    return this.#state;
  }

  /** Starts checking the files. `removal`: the large removal of the start, if any. */
  start(removal: ConfigRemoval | null): void {
    if (removal !== null && this.#state.state === 'running') void this.#move({ ...this.#state, removal });
    this.#checking.start(this.#wait().waitMs);
  }

  #wait(): { waitMs: number } {
    return { waitMs: Math.max(CHECK_EVERY_MS, this.#deps.source.size * CHECK_PER_FILE_MS) };
  }

  /** Checks once, and reads the files if they changed, a refused one is due again or a held one was confirmed. */
  async check(): Promise<void> {
    const found = this.#deps.source.check();
    if (found === 'changed') await this.#inTurn(() => this.#read({ isRequested: false }));
    else if (found === 'same' && (this.#isRetryDue() || (await this.#isConfirmed()))) await this.reload();
  }

  #isRetryDue(): boolean {
    const state = this.#state;
    return state.state === 'refused' && state.retryAtMs !== null && Date.now() >= state.retryAtMs;
  }

  /** True when the held file was confirmed, in this process or another one. */
  async #isConfirmed(): Promise<boolean> {
    if (this.#state.state !== 'held') return false;
    const { digest } = this.#state.removal;
    const confirmed = this.#deps.confirmations().isConfirmed(digest);
    return confirmed.catch(() => false);
  }

  /**
   * Reads the config and applies it, unless it is held. Rejects with a RefusedError where `confirm` is not the digest of the
   * file; the file is then treated as if there were no request.
   */
  async reload({ confirm }: ReloadRequest = {}): Promise<FileState> {
    if (confirm !== undefined) return this.#inTurn(() => this.#read({ isRequested: false, confirm }));
    this.#next ??= this.#inTurn(() => {
      this.#next = null;
      return this.#read({ isRequested: true });
    });
    return this.#next;
  }

  #inTurn<T>(read: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(read);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #read(request: Request): Promise<FileState> {
    const atMs = Date.now();
    const { digest, state } = await this.#loading(request, atMs).catch((error: unknown) => ({
      digest: null,
      state: this.#failed(error, atMs, request),
    }));
    await this.#move(state);
    if (request.confirm === undefined || digest === request.confirm || state.state === 'refused')
      return state;
    throw new RefusedError(
      `confirm: found ${request.confirm}, expected the digest of ${this.#deps.running().file} as it is now; a reload without \`confirm\` lists what this file would remove, and its digest`,
    );
  }

  async #loading(
    { isRequested, confirm }: Request,
    atMs: number,
  ): Promise<{ digest: string | null; state: FileState }> {
    const { source, running, confirmations } = this.#deps;
    const before = running();
    const config = await source.load();
    const { confirmAfter, mode } = before.reload;
    const removal = largeRemoval(namesOf(before), namesOf(config), { confirmAfter });
    const isPassive = mode === 'manual' && !isRequested;
    const isNamed = confirm !== undefined || this.#state.state === 'held';
    const needsDigest = isNamed || (removal !== null && !isPassive);
    const digest = needsDigest ? await confirmations().digestOf(config) : null;
    if (isPassive && (digest === null || digest !== confirm)) {
      const held = this.#heldAs(digest);
      return { digest, state: held ?? this.#noticed(changesBetween(before, config), atMs) };
    }
    // A file that needs a restart is refused, not held: its confirmation would stay.
    if (digest !== null) changesBetween(before, config);
    if (digest !== null && digest === confirm) await confirmations().confirm(digest);
    if (removal !== null && digest !== null && !(await confirmations().isConfirmed(digest))) {
      const held = { at: isoTime(atMs), held: true, digest, confirmAfter, ...removal };
      return { digest, state: await this.#hold(held, { before, config, isRequested, atMs }) };
    }
    return { digest, state: await this.#apply(config, { isRequested, atMs }) };
  }

  async #apply(
    config: Config,
    { isRequested, atMs }: { isRequested: boolean; atMs: number },
  ): Promise<FileState> {
    const { apply, log } = this.#deps;
    const changes = await apply(config, { isNewest: true });
    if (!isEmpty(changes)) {
      log.info(changesLine(changes), 'config.reloaded');
      return { state: 'running', ok: true, atMs, changes, removal: null };
    }
    log.info('config.unchanged');
    return {
      state: 'running',
      ok: true,
      atMs,
      changes,
      removal: isRequested ? null : this.#removalOfStart(),
    };
  }

  #noticed(changes: ConfigChanges, atMs: number): FileState {
    if (isEmpty(changes))
      return { state: 'running', ok: true, atMs, changes, removal: this.#removalOfStart() };
    this.#deps.log.warn(changesLine(changes), 'config.file_changed');
    return { state: 'changed', ok: false, atMs, error: null, before: this.#lastReload() };
  }

  /** Reports a file that removes much: once while it stays unchanged, and in the log at each request. */
  async #hold(
    removal: ConfigRemoval,
    {
      before,
      config,
      isRequested,
      atMs,
    }: { before: Config; config: Config; isRequested: boolean; atMs: number },
  ): Promise<FileState> {
    const { apply, confirmations, log } = this.#deps;
    const ended = withEndedSecrets(before, config);
    if (ended !== null) {
      // Its subscriptions and receivers are unchanged, and another process may have a newer config.
      await apply(ended.config, { isNewest: false });
      log.warn({ places: ended.places }, 'config.secrets_ended');
    }
    const held = this.#heldAs(removal.digest);
    if (held === null) await confirmations().report(removal);
    if (held === null || isRequested) log.error(removalLine(removal), 'config.large_removal');
    return held ?? { state: 'held', ok: false, atMs, removal };
  }

  #heldAs(digest: string | null): FileState | null {
    return this.#state.state === 'held' && this.#state.removal.digest === digest ? this.#state : null;
  }

  /** The state after an error. The same reason is logged once, however often the file is retried. */
  #failed(error: unknown, atMs: number, { isRequested, confirm }: Request): FileState {
    const { running, log } = this.#deps;
    const reason = reasonOf(error);
    const isManual = running().reload.mode === 'manual';
    if (isManual && !isRequested && confirm === undefined) {
      log.warn({ reason }, 'config.file_changed');
      return { state: 'changed', ok: false, atMs, error: reason, before: this.#lastReload() };
    }
    const isRepeated = this.#isRetryDue() && this.#state.state === 'refused' && this.#state.error === reason;
    if (!this.#checking.isClosed && !isRepeated) log.error({ reason }, 'config.reload_failed');
    this.#refusals = isRepeated ? this.#refusals + 1 : 0;
    const waitMs = Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** this.#refusals);
    // Only a restart changes that. In mode manual the requester is notified, and requests it again.
    const isFinal = isManual || error instanceof RestartNeededError;
    return {
      state: 'refused',
      ok: false,
      atMs,
      error: reason,
      retryAtMs: isFinal ? null : Date.now() + waitMs,
    };
  }

  #lastReload(): ReloadResult {
    return this.#state.state === 'changed' ? this.#state.before : this.#state;
  }

  #removalOfStart(): ConfigRemoval | null {
    const last = this.#lastReload();
    return last.state === 'running' ? last.removal : null;
  }

  async #move(next: FileState): Promise<void> {
    const { signals, log, confirmations } = this.#deps;
    const before = this.#state;
    this.#state = next;
    if (next.state !== 'refused') this.#refusals = 0;
    signals.emit('config.moved', { state: next.state, atMs: next.atMs, removal: removalOf(next) });
    if (before.state !== 'held' || next.state === 'held') return;
    log.info({ digest: before.removal.digest, state: next.state }, 'config.hold_ended');
    // A file that is briefly unreadable is the same afterwards. At worst the report is repeated.
    if (next.state !== 'refused')
      await confirmations()
        .removeReport()
        .catch(() => undefined);
  }

  /** Does not wait for a config that is being applied: that may wait for the end of the daemon. */
  close(): void {
    void this.#checking.close();
  }
}

function reasonOf(error: unknown): string {
  return withoutArguments(messageOf(error));
}

function removalOf(state: FileState): ConfigRemoval | null {
  return 'removal' in state ? state.removal : null;
}

/** A config without the secrets that a held file ends, and their places: `server.tokens.read`, `receivers.backend`. */
type EndedSecrets = { config: Config; places: string[] };

/**
 * Ends secrets despite a held reload. A token or signing secret that the file removes or replaces, in an entry that it still
 * has, ends at once: it may be known to a person who must not use it. An entry that would have none then retains all.
 * Additions wait for the confirmation. Null where nothing ends.
 */
export function withEndedSecrets(running: Config, file: Config): EndedSecrets | null {
  const [tokens, tokenPlaces] = endedTokens(running.server.tokens, file.server.tokens);
  const wanted = new Map(file.receivers.map((receiver) => [receiver.name, receiver]));
  const places = [...tokenPlaces];
  const receivers = running.receivers.map((receiver) => {
    const after = wanted.get(receiver.name);
    const secrets = after === undefined ? null : leftSecrets(receiver, after);
    if (secrets === null || receiver.type !== 'webhook') return receiver;
    places.push(`receivers.${receiver.name}`);
    return { ...receiver, secrets };
  });
  if (places.length === 0) return null;
  return { config: { ...running, server: { ...running.server, tokens }, receivers }, places };
}

type Tokens = ServerConfig['tokens'];

/** Without any token the API would be open to the whole machine, and without an admin token nobody could reload. */
function endedTokens(before: Tokens, after: Tokens): [Tokens, string[]] {
  const admin = leftOf(before.admin, after.admin);
  const ends = (scope: 'read' | 'consume'): boolean =>
    before[scope] !== null && before[scope].reveal() !== after[scope]?.reveal();
  const left: Tokens = {
    read: ends('read') ? null : before.read,
    consume: ends('consume') ? null : before.consume,
    admin: admin.length === 0 ? before.admin : admin,
  };
  if (left.read === null && left.consume === null && left.admin.length === 0) return [before, []];
  const places = [
    ...(left.read === before.read ? [] : ['server.tokens.read']),
    ...(left.consume === before.consume ? [] : ['server.tokens.consume']),
    ...(left.admin.length === before.admin.length ? [] : ['server.tokens.admin']),
  ];
  return [left, places];
}

/** The secrets that a receiver still signs with; null where none ends. An expiring secret alone is not enough. */
function leftSecrets(before: Receiver, after: Receiver): Secret[] | null {
  if (before.type !== 'webhook' || after.type !== 'webhook') return null;
  const left = leftOf(before.secrets, after.secrets);
  const signs = left.some((secret) => !(secret instanceof ExpiringSecret));
  return signs && left.length < before.secrets.length ? left : null;
}

function leftOf(before: readonly Secret[], after: readonly Secret[]): Secret[] {
  const remaining = new Set(after.map((secret) => secret.reveal()));
  return before.filter((secret) => remaining.has(secret.reveal()));
}
