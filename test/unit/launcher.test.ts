import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { needs, PARTS } from '../support/optional-parts.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** A Node that reports an old version to `-v` and to its program. */
const OLD_NODE = `#!/bin/sh
if [ "$1" = -v ]; then echo v20.20.2; exit; fi
exec '${process.execPath}' --import 'data:text/javascript,Object.defineProperty(process, "version", { value: "v20.20.2" })' "$@"
`;

/** The Node that npm then installs; a file of its own, because the machine's is the same one in disguise. */
const NEW_NODE = `#!/bin/sh\nexec '${process.execPath}' "$@"\n`;

/** Acts as the npm of the launcher's first step: installs dependencies, and a Node. */
const NPM = `#!/bin/sh
echo "$*" >> npm.log
case "$*" in
  ci*) mkdir -p node_modules; cp installed.json node_modules/.package-lock.json ;;
  i*) mkdir -p node_modules/.bin; cp new-node node_modules/.bin/node ;;
esac
`;

const MAIN = `console.log(JSON.stringify({ pid: process.pid, version: process.version, args: process.argv.slice(2) }));\n`;

/** A Node that is older than the program needs. */
const NODE_20 = needs(PARTS.node20);

let root = '';

async function executable(file: string, text: string): Promise<void> {
  await writeFile(join(root, file), text);
  await chmod(join(root, file), 0o755);
}

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'intentwatch-launcher-'));
  for (const folder of ['bin', 'machine', 'scripts', 'tmp']) await mkdir(join(root, folder));
  for (const file of ['intentwatch', 'bin/intentwatch.mjs', 'scripts/prepare.mjs', 'package.json'])
    await copyFile(join(ROOT, file), join(root, file));
  await executable('machine/node', OLD_NODE);
  await executable('machine/npm', NPM);
  await executable('new-node', NEW_NODE);
});

afterEach(() => rm(root, { recursive: true, force: true }));

async function source(): Promise<void> {
  await mkdir(join(root, 'src'));
  await writeFile(join(root, 'src/main.ts'), MAIN);
  const lock = JSON.stringify({ packages: { 'node_modules/used': { version: '1.2.3' } } });
  await writeFile(join(root, 'package-lock.json'), lock);
  await writeFile(join(root, 'installed.json'), lock);
}

async function run(command: readonly string[], path = `${join(root, 'machine')}:/usr/bin:/bin`) {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    env: { PATH: path, TMPDIR: join(root, 'tmp') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    output.stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output.stderr += chunk.toString();
  });
  await once(child, 'close');
  return { pid: child.pid, code: child.exitCode, ...output };
}

describe('the command on a Node that is too old', () => {
  test('states it in one sentence with the command to type, from the package', async () => {
    expect(await run([join(root, 'bin/intentwatch.mjs'), 'check'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^intentwatch: found Node v20\.20\.2, expected 24 or newer; [^\n]*type: npx --yes --package node@26 intentwatch [^\n]*\n$/,
      ),
    });
  });

  test('names the launcher, from a clone', async () => {
    await source();
    expect(await run(['node', join(root, 'bin/intentwatch.mjs'), 'check'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr:
        'intentwatch: found Node v20.20.2, expected 24 or newer; type, in the clone: ./intentwatch --help\n',
    });
  });

  test.skipIf(NODE_20.skip)(`does so on a real one${NODE_20.note}`, async () => {
    expect(await run([PARTS.node20.place ?? '', join(root, 'bin/intentwatch.mjs'), 'check'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^intentwatch: found Node v\d[^\n]*, expected 24 or newer; [^\n]*\n$/),
    });
  });
});

describe('the launcher of a clone', () => {
  test('installs missing packages, and becomes the program on the Node that was installed', async () => {
    await source();
    // From another folder and by a link, as in ~/bin.
    await symlink(join(root, 'intentwatch'), join(root, 'tmp/iw'));
    const { pid, code, stdout, stderr } = await run([join(root, 'tmp/iw'), 'check', '--config', 'a b.yaml']);
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('installing Node 26 into node_modules'),
    });
    // The same process: a signal to the launcher reaches the program.
    expect(JSON.parse(stdout)).toEqual({
      pid,
      version: process.version,
      args: ['check', '--config', 'a b.yaml'],
    });
    const calls = (await readFile(join(root, 'npm.log'), 'utf8')).trim().split('\n');
    expect(calls.map((call) => call.split(' ')[0])).toEqual(['ci', 'i']);

    expect(await run([join(root, 'intentwatch'), 'keygen'])).toMatchObject({ code: 0, stderr: '' });
  });

  test('reports in one sentence that there is no Node at all', async () => {
    for (const name of ['dirname', 'readlink'])
      await symlink(`/usr/bin/${name}`, join(root, 'scripts', name));
    const started = await run([join(root, 'intentwatch'), 'check'], join(root, 'scripts'));
    expect(started).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^intentwatch: found no node, expected Node 20 or newer[^\n]*\n$/),
    });
  });
});
