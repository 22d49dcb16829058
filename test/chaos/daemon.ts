import { join } from 'node:path';
import { chance, pick, type Random } from '../../sandbox/world/random.ts';
import { Program } from '../support/program.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** Share of the starts of a daemon with a bent clock that have a wrong clock. */
const WRONG = 0.7;

/** A disturbed daemon: a process that is started again and again with the same config. */
export class ChaosDaemon {
  readonly name: string;
  readonly #configFile: string;
  readonly #bender: string | null;
  readonly #env: Readonly<Record<string, string>>;
  #program: Program | null = null;
  /** The time from each SIGTERM to the exit of the process, in ms. */
  readonly shutdownsMs: number[] = [];
  readonly problems: string[] = [];
  startsWithWrongClock = 0;

  /** `bender` is the library that bends its clock; null leaves the clock right. `env` applies to every start. */
  constructor(options: {
    name: string;
    configFile: string;
    bender: string | null;
    env?: Readonly<Record<string, string>>;
  }) {
    this.name = options.name;
    this.#configFile = options.configFile;
    this.#bender = options.bender;
    this.#env = options.env ?? {};
  }

  /** Starts the process; it may not be ready yet. */
  async launch(random: Random): Promise<void> {
    this.#program = await Program.start(MAIN, ['start', '--config', this.#configFile], {
      ...this.#env,
      ...this.#clock(random),
    });
  }

  #clock(random: Random): Record<string, string> {
    if (this.#bender === null || !chance(random, WRONG)) return {};
    this.startsWithWrongClock += 1;
    return {
      LD_PRELOAD: this.#bender,
      FAKETIME: pick(random, ['+30s', '-30s']),
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    };
  }

  get logLines(): readonly string[] {
    return this.#program?.stdout ?? [];
  }

  async started(): Promise<void> {
    await this.#program?.line(/"msg":"daemon.started"/);
  }

  /** Stops the process as on a suspended machine. */
  stop(): void {
    this.#program?.send('SIGSTOP');
  }

  goOn(): void {
    this.#program?.send('SIGCONT');
  }

  async kill(): Promise<void> {
    await this.#program?.end('SIGKILL');
  }

  /** Ends it by SIGTERM, which must work in any state of its environment. */
  async terminate(): Promise<void> {
    if (this.#program === null) return;
    const { code, signal, tookMs } = await this.#program.end('SIGTERM');
    this.shutdownsMs.push(tookMs);
    if (code !== 0) this.problems.push(`${this.name} ended with ${code ?? signal} after SIGTERM`);
  }
}
