import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const MODULE = resolve(import.meta.dirname, '../../src/v8-flags.ts');
const START = resolve(import.meta.dirname, '../../src/commands/start.ts');

const SET_FLAGS = `import(${JSON.stringify(MODULE)}).then(({ setV8Flags }) => setV8Flags())`;

test('V8 knows all flags that the program sets, and the garbage of the start is collected', async () => {
  // Node ends once nothing is to come but the collection, which keeps no process alive.
  const program = `
    const { PerformanceObserver, constants } = require('node:perf_hooks');
    const alive = setInterval(() => {}, 1_000);
    new PerformanceObserver((list) => {
      const kinds = list.getEntries().map(({ detail }) => detail.kind);
      if (!kinds.includes(constants.NODE_PERFORMANCE_GC_MAJOR)) return;
      console.log('collected');
      clearInterval(alive);
    }).observe({ entryTypes: ['gc'] });
    ${SET_FLAGS};
  `;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', program]);
  expect(stdout + stderr).toBe('collected\n');
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
