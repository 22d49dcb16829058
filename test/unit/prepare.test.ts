import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  copyFile,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

const script = resolve(import.meta.dirname, '../../scripts/prepare.mjs');
const NOBODY = 65534;

const LOCK = {
  '': { version: '1.0.0' },
  'node_modules/used': { version: '1.2.3' },
  'node_modules/tested-with': { version: '4.5.6', dev: true },
  'node_modules/other-system': { version: '7.8.9', optional: true },
};
const ALL = {
  'node_modules/used': { version: '1.2.3' },
  'node_modules/tested-with': { version: '4.5.6', dev: true },
};
const PRODUCTION = { 'node_modules/used': { version: '1.2.3' } };

/** Acts as npm on the files that the script reads, and notes its arguments and settings. */
const NPM = `#!/bin/sh
echo "$*" >> npm.log
/usr/bin/env > npm.env
echo 'npm warn EBADENGINE noise'
if [ -e npm.hangs ]; then exec /bin/sleep 60; fi
if [ -e npm.fails ]; then echo 'npm error ENOTFOUND' >&2; exit 1; fi
case "$*" in
  ci*) /bin/rm -rf node_modules; /bin/mkdir node_modules
    case "$*" in
      *omit=dev*) /bin/cp production.json node_modules/.package-lock.json ;;
      *) /bin/cp all.json node_modules/.package-lock.json ;;
    esac ;;
  i*) /bin/mkdir -p node_modules/.bin
    printf '#!/bin/sh\\necho v26.1.0\\n' > node_modules/.bin/node
    /bin/chmod +x node_modules/.bin/node ;;
esac
`;

type Result = { code: number | null; stdout: string; stderr: string };

let binaries = '';
/** A Node that any user of this machine can reach. */
let node = '';
let root = '';

beforeAll(async () => {
  binaries = await realpath(await mkdtemp(join(tmpdir(), 'intentwatch-node-')));
  await chmod(binaries, 0o755);
  node = join(binaries, 'node');
  await link(await realpath(process.execPath), node).catch(() => copyFile(process.execPath, node));
});

afterAll(() => rm(binaries, { recursive: true, force: true }));

async function command(name: string, text: string): Promise<void> {
  await writeFile(join(root, 'bin', name), text);
  await chmod(join(root, 'bin', name), 0o755);
}

const redis = (version: string) => `#!/bin/sh\necho 'Redis server v=${version} sha=00000000:0 bits=64'\n`;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'intentwatch-prepare-')));
  await chmod(root, 0o777);
  for (const folder of ['scripts', 'bin', 'tmp']) await mkdir(join(root, folder));
  await chmod(join(root, 'tmp'), 0o777);
  await copyFile(script, join(root, 'scripts/prepare.mjs'));
  await writeFile(join(root, 'package-lock.json'), JSON.stringify({ packages: LOCK }));
  await writeFile(join(root, 'all.json'), JSON.stringify({ packages: ALL }));
  await writeFile(join(root, 'production.json'), JSON.stringify({ packages: PRODUCTION }));
  await symlink(node, join(root, 'bin/node'));
  await command('npm', NPM);
  await command('redis-server', redis('7.0.15'));
});

afterEach(() => rm(root, { recursive: true, force: true }));

type Start = {
  args?: string[];
  env?: Record<string, string>;
  node?: string;
  uid?: number;
  detached?: boolean;
};

function start(options: Start = {}): ChildProcess {
  return spawn(options.node ?? node, [join(root, 'scripts/prepare.mjs'), ...(options.args ?? [])], {
    cwd: tmpdir(),
    env: { PATH: join(root, 'bin'), TMPDIR: join(root, 'tmp'), ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: options.detached ?? false,
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
}

async function end(child: ChildProcess): Promise<Result> {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  await once(child, 'close');
  return { code: child.exitCode, stdout, stderr };
}

const prepare = (options: Start = {}): Promise<Result> => end(start(options));

async function put(file: string, content: unknown): Promise<void> {
  await mkdir(join(root, file, '..'), { recursive: true });
  await writeFile(join(root, file), JSON.stringify(content));
}

/** The commands to npm, one line per call, without the flags that only silence it. */
async function npmCalls(): Promise<string[]> {
  const log = await readFile(join(root, 'npm.log'), 'utf8').catch(() => '');
  const calls = log.split('\n').filter((line) => line !== '');
  return calls.map((line) => line.replace(/ --no-(audit|fund|update-notifier)/g, ''));
}

const SILENT: Result = { code: 0, stdout: '', stderr: '' };

describe('dependencies', () => {
  test('are installed in one line when missing, and never again while nothing changes', async () => {
    expect(await prepare()).toEqual({
      code: 0,
      stdout: 'installing dependencies (npm ci --include=dev) …\n',
      stderr: '',
    });
    expect(await prepare()).toEqual(SILENT);
    expect(await npmCalls()).toEqual(['ci --include=dev']);
  });

  test('are accepted from an installation by hand', async () => {
    await put('node_modules/.package-lock.json', { packages: ALL });
    expect(await prepare()).toEqual(SILENT);
    expect(await npmCalls()).toEqual([]);
  });

  test('are installed again when package-lock.json names another version', async () => {
    await prepare();
    await put('package-lock.json', { packages: { ...LOCK, 'node_modules/used': { version: '2.0.0' } } });
    await put('all.json', { packages: { ...ALL, 'node_modules/used': { version: '2.0.0' } } });
    expect((await prepare()).stdout).toContain('installing dependencies');
    expect(await prepare()).toEqual(SILENT);
  });

  test('are installed again when a part of them was removed', async () => {
    await prepare();
    await put('node_modules/.package-lock.json', { packages: PRODUCTION });
    expect((await prepare()).stdout).toContain('installing dependencies');
  });

  test('are not installed at every start where npm installs something else than the lock names', async () => {
    await put('all.json', { packages: { 'node_modules/used': { version: '1.2.4' } } });
    await prepare();
    expect(await prepare()).toEqual(SILENT);
  });

  test('for production leave the development ones out, which the tests then add', async () => {
    expect((await prepare({ args: ['--production'] })).stdout).toContain('npm ci --omit=dev');
    expect(await prepare({ args: ['--production'] })).toEqual(SILENT);
    expect((await prepare()).stdout).toContain('npm ci --include=dev');
    expect(await prepare({ args: ['--production'] })).toEqual(SILENT);
  });

  test('for development stay when production finds another out of date', async () => {
    await prepare();
    await put('package-lock.json', { packages: { ...LOCK, 'node_modules/used': { version: '2.0.0' } } });
    await put('all.json', { packages: { ...ALL, 'node_modules/used': { version: '2.0.0' } } });
    expect((await prepare({ args: ['--production'] })).stdout).toContain('npm ci --include=dev');
    expect(await prepare()).toEqual(SILENT);
  });

  test('show the output of npm when it fails, and how to go on', async () => {
    await put('npm.fails', '');
    const { code, stderr } = await prepare();
    expect(code).toBe(1);
    expect(stderr).toContain('npm error ENOTFOUND');
    expect(stderr).toContain('type: npm ci');
  });

  test('report that there is no npm', async () => {
    await rm(join(root, 'bin/npm'));
    const { code, stderr } = await prepare();
    expect(code).toBe(1);
    expect(stderr).toContain('npm ENOENT');
  });

  test('are not disturbed by the settings of the npm that runs the script', async () => {
    const env = {
      npm_config_omit: 'dev',
      npm_config_dry_run: 'true',
      npm_package_name: 'outer',
      npm_lifecycle_event: 'pretest',
      npm_config_registry: 'http://127.0.0.1:4873/',
      PATH: [join(root, 'node_modules/.bin'), '/somewhere/node-gyp-bin', join(root, 'bin')].join(':'),
    };
    await prepare({ env });
    const seen = (await readFile(join(root, 'npm.env'), 'utf8')).split('\n');
    expect(seen.filter((line) => /^npm_/i.test(line))).toEqual([
      'npm_config_registry=http://127.0.0.1:4873/',
    ]);
    expect(seen).toContain(`PATH=${join(root, 'bin')}`);
  });
});

describe('Node', () => {
  test("is added after npm ci has removed the one that the script itself ran on, where the machine's is old", async () => {
    const own = join(root, 'node_modules/node/bin/node');
    await mkdir(join(root, 'node_modules/node/bin'), { recursive: true });
    await link(node, own).catch(() => copyFile(node, own));
    await rm(join(root, 'bin/node'));
    await command('node', '#!/bin/sh\necho v20.20.2\n');
    const { code, stdout } = await prepare({ node: own });
    expect(code).toBe(0);
    expect(stdout.split('\n').slice(0, 2)).toEqual([
      'installing dependencies (npm ci --include=dev) …',
      'installing Node 26 into node_modules (npm i --no-save node@26; this machine has v20.20.2) …',
    ]);
    expect(await npmCalls()).toEqual([
      'ci --include=dev',
      'i --no-save --no-package-lock --include=dev node@26',
    ]);
    expect(await prepare()).toEqual(SILENT);
  });

  test('is replaced when the one in node_modules is too old, without adding development dependencies', async () => {
    await prepare({ args: ['--production'] });
    await mkdir(join(root, 'node_modules/.bin'));
    await writeFile(join(root, 'node_modules/.bin/node'), '#!/bin/sh\necho v22.0.0\n');
    await chmod(join(root, 'node_modules/.bin/node'), 0o755);
    expect((await prepare({ args: ['--production'] })).stdout).toContain('this machine has v22.0.0');
    expect((await npmCalls()).at(-1)).toBe('i --no-save --no-package-lock --omit=dev node@26');
  });
});

describe('the library that Node needs, where a bare Debian lacks it,', () => {
  const LACKING = `#!/bin/sh
if [ -e library ]; then echo v26.1.0; exit; fi
echo 'error while loading shared libraries: libatomic.so.1: cannot open shared object file' >&2
exit 127
`;

  beforeEach(async () => {
    await put('node_modules/.package-lock.json', { packages: ALL });
    await mkdir(join(root, 'node_modules/.bin'));
    await writeFile(join(root, 'node_modules/.bin/node'), LACKING);
    await chmod(join(root, 'node_modules/.bin/node'), 0o755);
    // The npm that finds it already installed.
    await command('npm', '#!/bin/sh\n');
    await command('apt-get', '#!/bin/sh\ncase "$*" in *libatomic1) : > library ;; esac\n');
  });

  test.runIf(process.getuid?.() === 0)('is installed', async () => {
    expect(await prepare()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('installing libatomic1 as root (apt-get install libatomic1) …'),
      stderr: '',
    });
    expect(await prepare()).toEqual(SILENT);
  });

  test('is requested by the command to type where the user is not root', async () => {
    const { code, stderr } = await prepare(process.getuid?.() === 0 ? { uid: NOBODY } : {});
    expect(code).toBe(1);
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(
      'Node 26 needs libatomic. Type: sudo apt-get install libatomic1',
    );
  });
});

describe('redis-server', () => {
  beforeEach(() => put('node_modules/.package-lock.json', { packages: ALL }));

  test('is requested where there are no system packages', async () => {
    await rm(join(root, 'bin/redis-server'));
    const { code, stderr } = await prepare();
    expect(code).toBe(1);
    expect(stderr).toContain('redis-server is missing and cannot be installed here (no apt-get).');
  });

  test('is requested by the command to type where the user is not root', async () => {
    await rm(join(root, 'bin/redis-server'));
    await command('apt-get', '#!/bin/sh\necho called > apt.log\n');
    const isRoot = process.getuid?.() === 0;
    const { code, stderr } = await prepare(isRoot ? { uid: NOBODY } : {});
    expect(code).toBe(1);
    expect(stderr).toBe(
      process.platform === 'darwin'
        ? 'redis-server is missing and cannot be installed here (not root). Type: brew install redis\n'
        : 'redis-server is missing and cannot be installed here (not root). Type: sudo apt-get install redis-server\n',
    );
    await expect(readFile(join(root, 'apt.log'))).rejects.toThrow('ENOENT');
  });

  test('is refused when too old, with the found and the needed version', async () => {
    await command('redis-server', redis('6.0.16'));
    const { code, stderr } = await prepare();
    expect(code).toBe(1);
    expect(stderr).toContain('redis-server has version 6.0.16, but redis-server 7.0 or newer is needed');
  });

  test('is only warned about for production, where the config may name another', async () => {
    await rm(join(root, 'bin/redis-server'));
    const { code, stdout, stderr } = await prepare({ args: ['--production'] });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toMatch(/^warning: redis-server is missing\. .*redis\.url/);
  });
});

describe('the optional parts', () => {
  const TOOLS = [
    'initdb',
    'chromium',
    'promtool',
    'prometheus-alertmanager',
    'go',
    'python3',
    'jsonnet',
    'gcc',
    'faketime',
  ];

  /** The npm that installs an EVM node at the requested place. */
  const EVM_NPM = `#!/bin/sh
echo "$*" >> npm.log
case "$*" in *anvil*) /bin/mkdir -p node_modules/.intentwatch-anvil/node_modules/.bin
  : > node_modules/.intentwatch-anvil/node_modules/.bin/anvil ;; esac
`;

  beforeEach(async () => {
    await put('node_modules/.package-lock.json', { packages: ALL });
    await command('npm', EVM_NPM);
  });

  test.runIf(process.getuid?.() === 0)('are installed once, the packages together', async () => {
    const install = TOOLS.map((tool) => `printf '#!/bin/sh\\n' > bin/${tool}; /bin/chmod +x bin/${tool}`);
    await command('apt-get', `#!/bin/sh\ncase "$*" in *install*) ${install.join('; ')} ;; esac\n`);
    await command('service', '#!/bin/sh\nexit 3\n');
    const { code, stdout, stderr } = await prepare({ args: ['--all'] });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /chromium prometheus prometheus-alertmanager golang-go python3 (python3-aiosmtpd )?jsonnet gcc (libc6-dev )?faketime as root \(apt-get install/,
    );
    expect(stdout).toContain('installing an EVM node');
    const again = await prepare({ args: ['--all'] });
    expect(again.stdout).not.toContain('EVM node');
    expect(again.stdout).not.toContain('chromium');
  });

  test.runIf(process.getuid?.() === 0)(
    'end with 1 where they cannot be installed, with the output of apt and npm',
    async () => {
      await command('apt-get', '#!/bin/sh\necho "E: Unable to locate package" >&2; exit 100\n');
      await command('npm', '#!/bin/sh\necho "npm error E404" >&2; exit 1\n');
      const { code, stderr } = await prepare({ args: ['--all'] });
      expect(code).toBe(1);
      expect(stderr).toContain('E: Unable to locate package');
      expect(stderr).toMatch(/chromium, .*jsonnet, gcc, .*faketime could not be installed/);
      expect(stderr).toContain('Without it its tests are skipped.');
    },
  );

  test('are named with the command to type where the user is not root', async () => {
    await command('apt-get', '#!/bin/sh\necho called > apt.log\n');
    await chmod(join(root, 'node_modules'), 0o777);
    const { code, stderr } = await prepare({
      args: ['--all'],
      ...(process.getuid?.() === 0 ? { uid: NOBODY } : {}),
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^missing optional parts: .*chromium, .*faketime\. On Debian, type: sudo apt-get install .*chromium .*faketime\n$/,
    );
    await expect(readFile(join(root, 'apt.log'))).rejects.toThrow('ENOENT');
  });

  test('are not installed by any other command', async () => {
    await command('apt-get', '#!/bin/sh\necho called > apt.log\n');
    expect(await prepare()).toEqual(SILENT);
    await expect(readFile(join(root, 'apt.log'))).rejects.toThrow('ENOENT');
  });
});

describe('several at once', () => {
  test('install once', async () => {
    const results = await Promise.all([prepare(), prepare(), prepare()]);
    expect(results.map((result) => result.code)).toEqual([0, 0, 0]);
    expect(await npmCalls()).toEqual(['ci --include=dev']);
  });

  test('do not wait for one that was killed', async () => {
    await put('npm.hangs', '');
    const killed = start({ detached: true });
    await once(killed.stdout ?? killed, 'data');
    const closed = once(killed, 'close');
    // Its npm is in its process group and ends with it.
    process.kill(-(killed.pid ?? 0), 'SIGKILL');
    await closed;
    await rm(join(root, 'npm.hangs'));
    const { code, stdout } = await prepare();
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: 'installing dependencies (npm ci --include=dev) …\n',
    });
  });

  test('take no lock in the folder for temporary files, where any user can be first', async () => {
    await put('npm.hangs', '');
    const child = start({ detached: true });
    await once(child.stdout ?? child, 'data');
    const closed = once(child, 'close');
    expect(await readdir(join(root, 'tmp'))).toEqual([]);
    expect(await readFile(join(root, '.prepare-lock/pid'), 'utf8')).toBe(`${child.pid}\n`);
    expect((await stat(join(root, '.prepare-lock'))).mode & 0o022).toBe(0);
    process.kill(-(child.pid ?? 0), 'SIGKILL');
    await closed;
  });

  test('leave no lock behind', async () => {
    await prepare();
    expect((await readdir(root)).filter((name) => name.includes('lock'))).toEqual(['package-lock.json']);
  });

  test('report that the checkout cannot be written', async () => {
    await chmod(root, 0o555);
    const { code, stderr } = await prepare(process.getuid?.() === 0 ? { uid: NOBODY } : {});
    await chmod(root, 0o777);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `${root} cannot be written (EACCES), so nothing can be installed in it. As its owner, type: node scripts/prepare.mjs\n`,
    });
    expect(await npmCalls()).toEqual([]);
  });

  test('need no lock, and so no right to write, where nothing is missing', async () => {
    await prepare();
    await chmod(root, 0o555);
    expect(await prepare(process.getuid?.() === 0 ? { uid: NOBODY } : {})).toEqual(SILENT);
    await chmod(root, 0o777);
  });
});
