import { statSync } from 'node:fs';
import type { Config } from '../config.ts';
import { ConfigError } from './errors.ts';
import { loadConfig } from './load.ts';

/** What came of reading a config. `files` are all that were read, each with its state before it was. */
export type Reading = { files: Map<string, string>; result: Config | ConfigError };

/** Reads a config file with all that it names. `isAgain` where it was read before. */
export async function readConfigFile(
  file: string,
  { env, isAgain }: { env: NodeJS.ProcessEnv; isAgain: boolean },
): Promise<Reading> {
  const files = new Map<string, string>();
  const onFile = (path: string): void => {
    if (!files.has(path)) files.set(path, stateOf(path));
  };
  const result = await loadConfig(file, env, { onFile, isAgain }).catch((error: unknown) => {
    if (error instanceof ConfigError) return error;
    throw error;
  });
  return { files, result };
}

/** What changes with a file's content, or with the file that stands behind its path. */
export function stateOf(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    // The times of a pipe are those of its writer, and nothing more comes from it.
    if (!stat.isFile()) return 'no file';
    const { dev, ino, size, mtimeNs, ctimeNs } = stat;
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'no file';
  }
}
