import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const MODULE = resolve(import.meta.dirname, '../../src/v8-flags.ts');
const START = resolve(import.meta.dirname, '../../src/commands/start.ts');

const SET_FLAGS = `import(${JSON.stringify(MODULE)}).then(({ setV8Flags }) => setV8Flags())`;

test('V8 knows all flags that the program sets', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', SET_FLAGS]);
  expect(stdout + stderr).toBe('');
});

test('a second start reuses the code that the first has compiled, with flags that it sets later', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-code-'));
  const program = `import(${JSON.stringify(START)}).then(() => ${SET_FLAGS})`;
  const env = { ...process.env, NODE_COMPILE_CACHE: folder, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' };
  const start = async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', program], {
      env,
      maxBuffer: 2 ** 26,
    });
    return (stdout + stderr).split('\n').filter((line) => line.includes('V8 code cache for'));
  };
  try {
    await start();
    const lines = await start();
    expect(lines.some((line) => line.includes('commands/start.ts was accepted'))).toBe(true);
    expect(lines.filter((line) => line.includes('rejected'))).toEqual([]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('the daemon loads no second undici, that of Node', async () => {
  const list = `console.log(process.moduleLoadList.filter((name) => name.endsWith('undici')).join())`;
  const program = `import(${JSON.stringify(START)}).then(() => ${list})`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program]);
  expect(stdout).toBe('\n');
});
