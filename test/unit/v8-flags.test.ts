import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const MODULE = resolve(import.meta.dirname, '../../src/v8-flags.ts');
const START = resolve(import.meta.dirname, '../../src/commands/start.ts');

const SET_FLAGS = `import(${JSON.stringify(MODULE)}).then(({ setV8Flags }) => setV8Flags(Promise.resolve()))`;

/** Stores the flags that a program sets in `flags`, and calls `onCollected` after a collection of all garbage. */
const NOTE_FLAGS = `
  const v8 = require('node:v8');
  const { constants, PerformanceObserver } = require('node:perf_hooks');
  const flags = [];
  const setFlag = v8.setFlagsFromString;
  v8.setFlagsFromString = (flag) => { flags.push(flag); setFlag(flag); };
  require('node:module').syncBuiltinESMExports();
  const alive = setInterval(() => {}, 1_000);
  const onCollected = (then) => new PerformanceObserver((list) => {
    const forced = constants.NODE_PERFORMANCE_GC_FLAGS_FORCED | constants.NODE_PERFORMANCE_GC_FLAGS_ALL_AVAILABLE_GARBAGE;
    if (!list.getEntries().some(({ detail }) => (detail.flags & forced) !== 0)) return;
    clearInterval(alive);
    then();
  }).observe({ entryTypes: ['gc'] });
`;

test('V8 knows all flags that the program sets', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--v8-options'], { maxBuffer: 2 ** 24 });
  const supported = new Set(stdout.match(/--[a-z][a-z-]+/g));
  const named = new Set((await readFile(MODULE, 'utf8')).match(/--[a-z][a-z-]+/g));
  expect(named.size).toBe(7);
  expect([...named].filter((flag) => !supported.has(flag))).toEqual([]);
});

test('what the start alone has used is given back, and the old space grows by little from then on', async () => {
  // Another observer of collections, as the daemon's metrics, makes those before known to a later one.
  const program = `
    ${NOTE_FLAGS}
    const youngMb = () => v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size / 2 ** 20;
    for (let held = [], at = 0; at < 2_000_000; at++) {
      held.push({ at });
      if (held.length === 200_000) held = [];
    }
    const before = youngMb();
    onCollected(() => setTimeout(() => console.log(JSON.stringify({ before, after: youngMb(), flags })), 200));
    ${SET_FLAGS};
  `;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', program]);
  expect(stderr).toBe('');
  const { before, after, flags } = JSON.parse(stdout);
  expect(before).toBeGreaterThan(12);
  expect(after).toBeLessThan(6);
  expect(flags.filter((flag: string) => flag.includes('heap-growing'))).toEqual([
    '--heap-growing-percent=25',
  ]);
});

test('a start that takes long has its heap collected and limited meanwhile, and gets no other flag', async () => {
  const program = `
    ${NOTE_FLAGS}
    onCollected(() => console.log(JSON.stringify(flags)));
    ${SET_FLAGS.replace('Promise.resolve()', 'new Promise(() => {})')};
  `;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', program], {
    timeout: 60_000,
  });
  expect(stderr).toBe('');
  const [lines] = stdout.split('\n');
  expect(JSON.parse(lines ?? '')).toEqual(['--heap-growing-percent=25', '--expose-gc', '--no-expose-gc']);
});

test('a second start reuses the code that the first has compiled, though that sets flags later', async () => {
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
