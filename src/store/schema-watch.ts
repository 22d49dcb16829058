import type { Logger } from 'pino';
import { Duty } from '../duty.ts';
import { type SchemaVersion, SchemaVersionError } from './schema-version.ts';

const EVERY_MS = 3_000;

type SchemaWatchDeps = {
  version: SchemaVersion;
  log: Logger;
  onChanged: (error: SchemaVersionError) => void;
};

/** Checks every few seconds that the stored data still has our version: another program may have migrated it. */
export class SchemaWatch {
  readonly #checking: Duty;

  constructor({ version, log, onChanged }: SchemaWatchDeps) {
    this.#checking = new Duty({
      everyMs: EVERY_MS,
      isShared: true,
      run: () => version.recheck(),
      onError: (error) => {
        if (!(error instanceof SchemaVersionError)) return log.debug({ error }, 'schema.unknown');
        this.close();
        onChanged(error);
      },
    });
  }

  start(): void {
    this.#checking.start();
  }

  close(): void {
    void this.#checking.close();
  }
}
