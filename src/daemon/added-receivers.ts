import type { Logger } from 'pino';
import { readAddedReceiver } from '../config/added-receiver.ts';
import type { Config, Receiver } from '../config/config.ts';
import { openDefinition } from '../operations/added-receivers.ts';
import type { AddedReceiverStore, Sealing } from '../store/added-receivers.ts';

/** How often it is looked whether another process has changed them. */
const LOOK_EVERY_MS = 1_000;

/** What they are read with. `apply` has the daemon go on with them. */
type AddedReceiversParts = {
  store: AddedReceiverStore;
  sealing: Sealing | null;
  apply: () => Promise<void>;
  log: Logger;
};

/** The receivers that were made through the API, by whichever process: read from Redis, and read again when they change. */
export class AddedReceivers {
  readonly #parts: AddedReceiversParts;
  #version: string | null = null;
  #definitions = new Map<string, string>();
  readonly #told = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(parts: AddedReceiversParts) {
    this.#parts = parts;
  }

  /** Reads them, if they have changed. Returns whether they have. */
  async load(): Promise<boolean> {
    const { store, log } = this.#parts;
    const version = await store.version();
    if (version === this.#version) return false;
    const before = this.#definitions.size;
    // What changes between the two is read again by the next look.
    this.#definitions = await store.all();
    this.#version = version;
    if (version === null && before > 0) log.error({ receivers: before }, 'receivers.lost');
    return true;
  }

  /** A config with them. A name belongs to the file first; what cannot be read here is left to other processes. */
  addTo(config: Config): Config {
    const names = new Set(config.receivers.map(({ name }) => name));
    const limits = { hasSmtp: config.smtp !== null, retentionMs: config.retentionMs };
    const added = [...this.#definitions].flatMap(([name, sealed]): Receiver[] => {
      if (names.has(name)) return this.#leave(name, 'the config has a receiver of this name');
      const { sealing } = this.#parts;
      const definition = sealing === null ? null : openDefinition(name, sealed, sealing);
      if (definition === null) return this.#leave(name, 'it was made with another server.secretsKey');
      const receiver = readAddedReceiver(definition, limits);
      if (!Array.isArray(receiver)) return [receiver];
      const [fault] = receiver;
      return this.#leave(name, `${fault?.place ?? ''}: expected ${fault?.expected ?? ''}`);
    });
    if (added.length === 0) return config;
    const addedReceivers = added.map(({ name }) => name);
    return { ...config, receivers: [...config.receivers, ...added], addedReceivers };
  }

  /** Whether there is one of this name. */
  has(name: string): boolean {
    return this.#definitions.has(name);
  }

  #leave(receiver: string, reason: string): [] {
    const told = `${receiver} ${reason}`;
    if (!this.#told.has(told)) this.#parts.log.warn({ receiver, reason }, 'receiver.left_out');
    this.#told.add(told);
    return [];
  }

  /** Looks for changes from now on. */
  start(): void {
    if (this.#closing) return;
    this.#timer = setTimeout(() => void this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const { apply, log } = this.#parts;
    const version = this.#version;
    try {
      if (await this.load()) await apply();
    } catch (error) {
      // Not applied: the next look finds it changed again.
      this.#version = version;
      if (!this.#closing) log.warn({ error }, 'receivers.error');
    }
    this.start();
  }

  close(): void {
    this.#closing = true;
    clearTimeout(this.#timer);
  }
}
