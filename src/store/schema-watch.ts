import type { Logger } from 'pino';
import { type SchemaVersion, SchemaVersionError } from './schema-version.ts';

const EVERY_MS = 3_000;

/** Checks every few seconds that the stored data still has our version: another program may have migrated it. */
export class SchemaWatch {
  readonly #parts: { version: SchemaVersion; log: Logger; onChanged: (error: SchemaVersionError) => void };
  #timer: NodeJS.Timeout | null = null;
  #closing = false;

  constructor(parts: {
    version: SchemaVersion;
    log: Logger;
    onChanged: (error: SchemaVersionError) => void;
  }) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = setTimeout(async () => {
      await this.#look();
      if (!this.#closing) this.start();
    }, EVERY_MS);
  }

  async #look(): Promise<void> {
    const { version, log, onChanged } = this.#parts;
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
