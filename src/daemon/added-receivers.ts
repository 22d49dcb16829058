import type { Logger } from 'pino';
import { type AddedReceiverRules, readAddedReceiver } from '../config/added-receiver.ts';
import type { Config, Receiver } from '../config/config.ts';
import { Duty } from '../duty.ts';
import { type AddedReceiverDeps, describeFault, openDefinition } from '../operations/added-receivers.ts';
import type { OriginOf } from '../operations/receivers.ts';
import { type AddedReceiverStore, Encryption } from '../store/added-receivers.ts';

/** Interval of testing whether another process has changed the receivers. */
const CHECK_EVERY_MS = 1_000;

type AddedReceiversDeps = {
  store: AddedReceiverStore;
  encryption: Encryption | null;
  apply: () => Promise<void>;
  log: Logger;
};

/** Receivers that any process added through the API. They are read from Redis, and read again when they change. */
export class AddedReceivers {
  readonly #deps: AddedReceiversDeps;
  #version: string | null = null;
  #definitions = new Map<string, string>();
  #leftOut: ReadonlyMap<string, string> = new Map();
  readonly #checking: Duty;

  constructor(deps: AddedReceiversDeps) {
    this.#deps = deps;
    this.#checking = new Duty({
      everyMs: CHECK_EVERY_MS,
      isShared: true,
      run: () => this.#check(),
      onError: (error) => deps.log.warn({ error }, 'receivers.error'),
    });
  }

  /** Reads them, if they have changed. Returns true when they have. */
  async load(): Promise<boolean> {
    const { store, log } = this.#deps;
    const version = await store.version();
    if (version === this.#version) return false;
    const before = this.#definitions.size;
    // The next poll finds a change between these two reads.
    this.#definitions = await store.all();
    this.#version = version;
    if (version === null && before > 0) log.error({ receivers: before }, 'receivers.lost');
    return true;
  }

  /** Adds them to a config. Omits, with a reason: names of the file; and, for other processes, unreadable or disallowed ones. */
  addTo(config: Config): { config: Config; leftOut: ReadonlyMap<string, string> } {
    const names = new Set(config.receivers.map(({ name }) => name));
    const rules = rulesOf(config);
    const leftOut = new Map<string, string>();
    const added: Receiver[] = [];
    for (const [name, encrypted] of this.#definitions) {
      const receiver = names.has(name)
        ? 'the config has a receiver of this name'
        : this.#read(name, encrypted, rules);
      if (typeof receiver === 'string') leftOut.set(name, receiver);
      else added.push(receiver);
    }
    if (added.length === 0) return { config, leftOut };
    const addedReceivers = added.map(({ name }) => name);
    return { config: { ...config, receivers: [...config.receivers, ...added], addedReceivers }, leftOut };
  }

  /** Reads them at the start, adds them to the config, and reports those that are left out. */
  async extend(file: Config): Promise<Config> {
    await this.load();
    const { config, leftOut } = this.addTo(file);
    this.report(leftOut);
    return config;
  }

  #read(name: string, encrypted: string, rules: AddedReceiverRules): Receiver | string {
    const { encryption } = this.#deps;
    const definition = encryption === null ? null : openDefinition(name, encrypted, encryption);
    if (definition === null) return 'it was made with another server.secretsKey';
    const receiver = readAddedReceiver(definition, rules);
    return Array.isArray(receiver) ? receiver.map(describeFault).join('; ') : receiver;
  }

  report(leftOut: ReadonlyMap<string, string>): void {
    for (const [receiver, reason] of leftOut) {
      if (this.#leftOut.get(receiver) !== reason)
        this.#deps.log.warn({ receiver, reason }, 'receiver.left_out');
    }
    this.#leftOut = leftOut;
  }

  reasonLeftOut(name: string): string | null {
    return this.#leftOut.get(name) ?? null;
  }

  has(name: string): boolean {
    return this.#definitions.has(name);
  }

  start(): void {
    this.#checking.start();
  }

  async #check(): Promise<void> {
    const version = this.#version;
    try {
      if (await this.load()) await this.#deps.apply();
    } catch (error) {
      // Not applied: the next poll finds the change again.
      this.#version = version;
      throw error;
    }
  }

  /** Does not wait for a change that is being applied: that may wait for the end of the daemon. */
  close(): void {
    void this.#checking.close();
  }
}

function rulesOf({ smtp, retentionMs, server }: Config): AddedReceiverRules {
  return { hasSmtp: smtp !== null, retentionMs, limits: server.apiReceivers };
}

/** Opens the receivers that are added through the API, and the dependencies of the routes that add them. */
export async function openAddedReceivers(daemon: {
  store: AddedReceiverStore;
  config: () => Config;
  apply: () => Promise<void>;
  log: Logger;
}): Promise<{ added: AddedReceivers; apiReceivers: AddedReceiverDeps }> {
  const { store, config, apply, log } = daemon;
  const { secretsKey } = config().server;
  const encryption = secretsKey === null ? null : await Encryption.create(secretsKey);
  const added = new AddedReceivers({ store, encryption, apply, log });
  const originOf: OriginOf = (name) => {
    if (config().receivers.some((one) => one.name === name)) return { origin: 'file', leftOut: null };
    return { origin: added.has(name) ? 'api' : null, leftOut: added.reasonLeftOut(name) };
  };
  return { added, apiReceivers: { store, encryption, rules: () => rulesOf(config()), apply, originOf } };
}
