import type { Logger } from 'pino';
import { type SchemaVersion, SchemaVersionError } from './schema-version.ts';

const EVERY_MS = 3_000;

/** Checks every few seconds that the stored data still has our version: another program may have migrated it. */
export class SchemaWatch {
  readonly #deps: { version: SchemaVersion; log: Logger; onChanged: (error: SchemaVersionError) => void };
  #timer: NodeJS.Timeout | null = null;
  #closing = false;

  constructor(deps: {
    version: SchemaVersion;
    log: Logger;
    onChanged: (error: SchemaVersionError) => void;
  }) {
    this.#deps = deps;
  }

  start(): void {
    this.#timer = setTimeout(async () => {
      await this.#check();
      if (!this.#closing) this.start();
    }, EVERY_MS);
  }

  async #check(): Promise<void> {
    const { version, log, onChanged } = this.#deps;
    try {
      await version.recheck();
    } catch (error) {
      if (this.#closing) return;
      if (!(error instanceof SchemaVersionError)) {
        log.debug({ error }, 'schema.unknown');
        return;
      }
      this.close();
      onChanged(error);
    }
  }

  close(): void {
    this.#closing = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }
}
