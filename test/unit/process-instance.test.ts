import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { afterEach, expect, test } from 'vitest';
import { hasEnded, parseInstance, readSystemProcess } from '../../src/store/process-instance.ts';
import { eventually } from '../support/eventually.ts';

const running: ChildProcess[] = [];

afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
});

async function own() {
  const system = await readSystemProcess();
  if (system === null) throw new Error('found no /proc, expected that of Linux');
  return system;
}

function started(command: string, args: readonly string[]): ChildProcess {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  running.push(child);
  return child;
}

async function statOf(pid: number): Promise<{ state: string; started: string }> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', started: fields[19] ?? '' };
}

async function systemOf(pid: number) {
  return { ...(await own()), pid, started: (await statOf(pid)).started };
}

test('this process runs', async () => {
  expect(await hasEnded(await own(), await own())).toBe(false);
});

test('a process runs while it is stopped, and has ended after its kill', async () => {
  const child = started('sleep', ['600']);
  const other = await systemOf(child.pid ?? 0);
  expect(await hasEnded(other, await own())).toBe(false);
  child.kill('SIGSTOP');
  await eventually('it is stopped', async () => (await statOf(other.pid)).state === 'T');
  expect(await hasEnded(other, await own())).toBe(false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await hasEnded(other, await own())).toBe(true);
});

test('a process that nobody has waited for has ended', async () => {
  // The child ends only once its parent is no shell any more, which would wait for it.
  const child = '(until grep -q sleep /proc/$$/comm; do :; done)';
  const parent = started('sh', ['-c', `${child} & echo $!; exec sleep 600`]);
  if (parent.stdout === null) throw new Error('it has no output');
  const [line] = await once(createInterface({ input: parent.stdout }), 'line');
  const pid = Number(line);
  await eventually('it is a zombie', async () => (await statOf(pid)).state === 'Z');
  expect(await hasEnded(await systemOf(pid), await own())).toBe(true);
});

test('a later process with the same pid is another one', async () => {
  expect(await hasEnded({ ...(await own()), started: '1' }, await own())).toBe(true);
});

test('nothing is shown of a process of another boot or pid namespace, or where /proc is missing', async () => {
  const system = await own();
  const gone = { ...system, pid: 4_194_304 + 1 };
  expect(await hasEnded(gone, system)).toBe(true);
  expect(await hasEnded({ ...gone, boot: 'another' }, system)).toBe(null);
  expect(await hasEnded({ ...gone, namespace: 'pid:[1]' }, system)).toBe(null);
  expect(await hasEnded(null, system)).toBe(null);
  expect(await hasEnded(gone, null)).toBe(null);
});

test('an instance of another shape is none', () => {
  for (const text of ['', '{', '{}', '{"connection":1,"system":null}'])
    expect(parseInstance(text)).toBe(null);
  expect(parseInstance('{"connection":"a","system":null}')).toEqual({ connection: 'a', system: null });
});
