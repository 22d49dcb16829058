import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PARTS } from './optional-parts.ts';

const SOURCE = join(import.meta.dirname, 'shifted-clock.c');

/** The wall clock of the programs that are started with its `env`. Tests that use it need `PARTS.gcc`. */
export class ShiftedClock {
  readonly #folder = mkdtempSync(join(tmpdir(), 'intentwatch-clock-'));
  readonly #file: number;
  /** The environment of a program under this clock. Its timers and spans stay true. */
  readonly env: Readonly<Record<string, string>>;

  constructor() {
    const library = join(this.#folder, 'clock.so');
    execFileSync(PARTS.gcc.place ?? 'gcc', ['-O2', '-shared', '-fPIC', '-o', library, SOURCE]);
    const place = join(this.#folder, 'clock');
    this.#file = openSync(place, 'w');
    this.shift(0);
    this.env = { LD_PRELOAD: library, SHIFTED_CLOCK: place };
  }

  /** Sets the clock `ms` ahead of the real time (behind where negative), at once. */
  shift(ms: number): void {
    this.#write(0n, ms);
  }

  /** Stops the clock at a time, milliseconds since 1970. */
  stopAt(ms: number): void {
    this.#write(1n, ms);
  }

  close(): void {
    closeSync(this.#file);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #write(mode: bigint, ms: number): void {
    writeSync(this.#file, new BigInt64Array([mode, BigInt(Math.round(ms * 1_000))]), 0, 16, 0);
  }
}
