import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Secret } from '../../secret.ts';
import { withTimeout } from '../../with-timeout.ts';
import type { Config } from '../config.ts';
import { ExpiringSecret } from '../fields/signing-secret.ts';
import { ConfigError, type ConfigPath, type ConfigProblem } from './errors.ts';
import type { Reading } from './reading.ts';

/** What a thread is given that reads a config. */
export type ThreadTask = { file: string; env: NodeJS.ProcessEnv };

/** What comes back from it: as a Reading, of what can be copied from thread to thread. */
export type ThreadAnswer = { files: Map<string, string>; outcome: CopiedConfig | ConfigProblem[] };

/** A config, and what of it is lost in a copy: its secrets by their places. */
type CopiedConfig = { config: Config; secrets: CopiedSecret[] };
type CopiedSecret = { path: ConfigPath; value: string; untilMs: number | null };

/** Far more than a config of the largest size takes. */
const MOST_MS = 300_000;

/** Made of this file's own kind: TypeScript in a clone, JavaScript in the package. */
const PROGRAM = new URL(`./load-thread${extname(import.meta.filename)}`, import.meta.url);

/**
 * Reads a config in a thread of its own: however large or wrong it is, this one goes on with its work. Throws a ConfigError
 * for one that takes too long, or more memory than there is.
 */
export async function readInThread(task: ThreadTask): Promise<Reading> {
  const thread = new Worker(PROGRAM, { workerData: { ...task, env: { ...task.env } } });
  // The end of the process does not wait for it.
  thread.unref();
  const answer = await withTimeout(answerFrom(thread, task.file), MOST_MS);
  void thread.terminate();
  if (answer === null) throw tooLarge(task.file, `is not read within ${MOST_MS / 1_000} s`);
  const { files, outcome } = answer;
  return { files, result: Array.isArray(outcome) ? new ConfigError(outcome) : pasted(outcome) };
}

function answerFrom(thread: Worker, file: string): Promise<ThreadAnswer> {
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.on('error', (error) => {
      const isMemory = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      reject(isMemory ? tooLarge(file, 'takes more memory to be read than there is') : error);
    });
    thread.once('exit', (code) => reject(new Error(`the thread that reads ${file} ended with ${code}`)));
  });
}

function tooLarge(file: string, found: string): ConfigError {
  const message = `found a config that ${found}, expected a smaller one`;
  return new ConfigError([{ file, line: 1, column: 1, path: '', message }]);
}

/** What a thread sends of a reading. */
export function answerOf({ files, result }: Reading): ThreadAnswer {
  if (result instanceof ConfigError) return { files, outcome: result.problems };
  return { files, outcome: { config: result, secrets: secretsIn(result, []) } };
}

function secretsIn(value: unknown, path: ConfigPath): CopiedSecret[] {
  if (value instanceof Secret) {
    return [{ path, value: value.reveal(), untilMs: value instanceof ExpiringSecret ? value.untilMs : null }];
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => secretsIn(item, [...path, index]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => secretsIn(item, [...path, key]));
}

/** A copied config with its secrets in their places. */
function pasted({ config, secrets }: CopiedConfig): Config {
  for (const { path, value, untilMs } of secrets) {
    const holder = path.slice(0, -1).reduce<object>((outer, key) => Reflect.get(outer, key), config);
    const secret = untilMs === null ? new Secret(value) : new ExpiringSecret(value, untilMs);
    Reflect.set(holder, path.at(-1) ?? '', secret);
  }
  return config;
}
