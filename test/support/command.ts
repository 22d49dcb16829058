import { COMMANDS } from '../../src/commands/commands.ts';
import { reportFailure } from '../../src/exit.ts';

/** The end of a command: its exit code, and the printed lines. */
export type Ran = { code: number; out: string; err: string };

/** Thrown in place of the end of the process. */
class Exit extends Error {
  override readonly name = 'Exit';
  readonly code: number;

  constructor(code: number) {
    super(`the command ended with ${code}`);
    this.code = code;
  }
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command of the program to its end inside the process of the test, as main.ts does: a process start costs a
 * thousand times as much. `env` is its environment beyond the `PATH`. Calls run one after another, because a command owns
 * the output, environment and exit code of its process.
 */
export function runCommand(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  const running = last.then(() => run(args, env));
  last = running.catch(() => undefined);
  return running;
}

async function run([name = '', ...args]: readonly string[], env: Record<string, string>): Promise<Ran> {
  const listed = COMMANDS[name];
  if (listed === undefined) throw new Error(`found no command ${name}`);
  const [out, err] = [captured(process.stdout), captured(process.stderr)];
  const before = { env: process.env, exit: process.exit, exitCode: process.exitCode };
  process.env = { PATH: before.env.PATH, ...env };
  process.exitCode = undefined;
  process.exit = (code) => {
    throw new Exit(Number(code ?? process.exitCode ?? 0));
  };
  try {
    const command = await listed.load();
    await command.parseAsync(args, { from: 'user' });
    return { code: Number(process.exitCode ?? 0), out: out.text(), err: err.text() };
  } catch (error) {
    const code = error instanceof Exit ? error.code : reportFailure(error);
    return { code, out: out.text(), err: err.text() };
  } finally {
    Object.assign(process, before);
    out.release();
    err.release();
  }
}

/** Captures the writes to a stream until it is released. */
function captured(stream: NodeJS.WriteStream): { text: () => string; release: () => void } {
  const chunks: Buffer[] = [];
  const { write } = stream;
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    chunks.push(Buffer.from(chunk as string));
    const done = rest.find((one) => typeof one === 'function');
    if (done !== undefined) process.nextTick(done as () => void);
    return true;
  };
  return {
    text: () => Buffer.concat(chunks).toString('utf8').replace(/\n$/, ''),
    release: () => {
      stream.write = write;
    },
  };
}
