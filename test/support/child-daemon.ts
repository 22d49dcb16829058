import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { configYaml, type TestConfig } from './daemon.ts';
import { COMPILED } from './program.ts';

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;

const LINE = z.looseObject({ msg: z.string() });

/** One line of a daemon's log. */
export type LogLine = z.infer<typeof LINE>;

/** Runs a program in a pid namespace of its own, as in a container: others cannot see whether it has ended. */
export const ELSEWHERE = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];

/** A daemon in a process of its own, which a test can kill. */
export class ChildDaemon {
  readonly #yaml: string;
  readonly #command: readonly string[];
  readonly lines: LogLine[] = [];
  #waiting: (() => void)[] = [];
  #child: ChildProcess | null = null;
  #exited: Promise<void> = Promise.resolve();

  /**
   * `nodeArgs` go before the program, such as `--import` of a module that shifts the clock; `within` is a command that runs it,
   * such as `ELSEWHERE`.
   */
  constructor(config: TestConfig, nodeArgs: readonly string[] = [], within: readonly string[] = []) {
    this.#yaml = configYaml(config);
    this.#command = [...within, process.execPath, ...nodeArgs];
  }

  /** Starts the daemon; resolves when it logs that it has started. */
  async start(): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-child-'));
    const file = join(folder, 'intentwatch.yaml');
    await writeFile(file, this.#yaml);
    const [command = '', ...args] = this.#command;
    const child = spawn(command, [...args, MAIN, 'start', '--config', file], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...COMPILED },
    });
    this.#child = child;
    let ended: string | null = null;
    this.#exited = new Promise((resolve) =>
      child.once('exit', (code, signal) => {
        ended = String(code ?? signal);
        resolve();
        for (const wake of this.#waiting.splice(0)) wake();
      }),
    );
    const from = this.lines.length;
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.lines.push(LINE.parse(JSON.parse(line)));
      for (const wake of this.#waiting.splice(0)) wake();
    });
    await this.until(
      (lines) => ended !== null || lines.slice(from).some((line) => line.msg === 'daemon.started'),
    );
    if (ended !== null) {
      const lines = this.lines.slice(from).map((line) => JSON.stringify(line));
      throw new Error(
        `the daemon ended with ${ended} before it had started:\n${lines.slice(-20).join('\n')}`,
      );
    }
    await rm(folder, { recursive: true, maxRetries: 5 });
  }

  async until(condition: (lines: LogLine[]) => boolean): Promise<void> {
    while (!condition(this.lines)) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  freeze(): void {
    this.#child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child?.kill('SIGCONT');
  }

  /** Ends it with `kill -9`. Resolves when it is gone. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.#exited;
  }
}
