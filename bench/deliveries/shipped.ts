import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const CLONE = join(import.meta.dirname, '../..');
const UNIT = 'packaging/systemd/intentwatch.service';

/** The program of a clone as its systemd unit starts it: a file for Node, and the environment that the unit sets. */
export function shipped(clone = CLONE): { main: string; env: Record<string, string> } {
  const lines = readFileSync(join(clone, UNIT), 'utf8').matchAll(/^Environment=(\w+)=(.*)$/gm);
  return {
    main: join(clone, 'bin/intentwatch.mjs'),
    env: Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value])),
  };
}
