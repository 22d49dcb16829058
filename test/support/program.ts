import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const CACHE = join(import.meta.dirname, '../../node_modules/.cache/node');

/** Tests start the program hundreds of times and reuse Node's compiled code. Benchmarks start it as users do. */
export const COMPILED = process.env.VITEST === undefined ? {} : { NODE_COMPILE_CACHE: CACHE };

/** The end of a program: its exit code, or the signal that ended it. */
export type Ending = { code: number | null; signal: NodeJS.Signals | null };

/** Starts a TypeScript file as a program of its own; `env` is what it finds in its environment beyond the `PATH`. */
export type StartProgram = (
  file: string,
  args: readonly string[],
  env?: Record<string, string>,
) => Promise<Program>;

/** A child process whose lines of output can be awaited. */
export class Program {
  readonly #child: ChildProcess;
  readonly #listeners = new Set<(line: string) => void>();
  readonly #ended: Promise<Ending>;
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#ended = new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal })));
    this.#read(child.stdout, this.stdout);
    this.#read(child.stderr, this.stderr);
  }

  #read(stream: NodeJS.ReadableStream | null, lines: string[]): void {
    if (stream === null) throw new Error('the program has no output to read');
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      for (const listener of this.#listeners) listener(line);
    });
  }

  static async start(
    file: string,
    args: readonly string[],
    env: Record<string, string> = {},
  ): Promise<Program> {
    return Program.run([process.execPath, file, ...args], env);
  }

  static async run(
    [command = '', ...args]: readonly string[],
    env: Record<string, string> = {},
  ): Promise<Program> {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, ...COMPILED, ...env },
    });
    const program = new Program(child);
    await once(child, 'spawn');
    return program;
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error('the program was not started');
    return pid;
  }

  /** Calls back with every line from now on, of both outputs, until the program ends. */
  onLine(listener: (line: string) => void): void {
    this.#listeners.add(listener);
  }

  /** Resolves with the match of the first line, past or future, that fits a pattern. Throws when the program ends before. */
  async line(pattern: RegExp): Promise<RegExpExecArray> {
    for (const line of [...this.stdout, ...this.stderr]) {
      const match = pattern.exec(line);
      if (match !== null) return match;
    }
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const listener = (line: string): void => {
      const match = pattern.exec(line);
      if (match !== null) resolve(match);
    };
    this.#listeners.add(listener);
    void this.#ended.then(({ code, signal }) =>
      reject(new Error(`ended with ${code ?? signal} before ${pattern}:\n${this.output()}`)),
    );
    return promise.finally(() => this.#listeners.delete(listener));
  }

  output(): string {
    return [...this.stdout.slice(-20), ...this.stderr.slice(-20)].join('\n');
  }

  send(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resolves when the program has ended and all its output was read. */
  async ending(): Promise<Ending> {
    return this.#ended;
  }

  /** Sends a signal and waits for the end; returns also the time that took, for output. */
  async end(signal: NodeJS.Signals): Promise<Ending & { tookMs: number }> {
    const startMs = performance.now();
    this.send(signal);
    const ending = await this.ending();
    return { ...ending, tookMs: performance.now() - startMs };
  }
}
