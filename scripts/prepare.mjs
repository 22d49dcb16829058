// Installs the missing requirements of an npm script: redis-server, the dependencies, Node 26.
//
//   node scripts/prepare.mjs                for tests, checks and the demo
//   node scripts/prepare.mjs --production   for `npm start`
//   node scripts/prepare.mjs --no-redis     for packing; with --production, for most commands
//   node scripts/prepare.mjs --chaos        for `npm run chaos`: also faketime, where it can be installed
//   node scripts/prepare.mjs --all          `npm run setup:all`: also the optional parts that some tests run against:
//                                           Postgres, Chromium, Prometheus with its Alertmanager, jsonnet, Go, Python
//                                           with aiosmtpd, faketime, an EVM node, Node 20 and 26; exit code 1 where one fails
//
// It runs on the machine's own Node (20 or newer) while nothing is installed yet, so it is plain JavaScript and uses
// Node's own modules only. npm puts node_modules/.bin first on PATH for the following script: that script gets a `node`
// installed there. Silent when nothing is missing; otherwise one line per step, and exit code 1 with the command to type
// when a step cannot be done here.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const OLDEST_NODE = 24;
const INSTALLED_NODE = 26;
const OLDEST_REDIS = [7, 0];
const LOCK_WAIT_MS = 15 * 60_000;
const LOCK_CHECK_MS = 250;

const root = realpathSync(resolve(dirname(fileURLToPath(import.meta.url)), '..'));
const modules = join(root, 'node_modules');
const localNode = join(modules, '.bin', 'node');
const stampFile = join(modules, '.intentwatch-prepared');
const production = process.argv.includes('--production');
const all = process.argv.includes('--all');
const chaos = process.argv.includes('--chaos');
const withoutRedis = process.argv.includes('--no-redis');

/** Stops the following script; the message names the command to type. */
class Missing extends Error {}

function print(text) {
  process.stdout.write(`${text}\n`);
}

/** Runs a command to its end; `output` is both streams, `status` null when it could not start or was killed. */
function run(command, args, options = {}) {
  const done = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  });
  if (done.signal !== null) throw new Missing(`${command} ${args.join(' ')} was ended by ${done.signal}`);
  const output = `${done.stdout ?? ''}${done.stderr ?? ''}`;
  return { status: done.status, output: done.error ? `${done.error.message}\n` : output };
}

function findOnPath(command, path = process.env.PATH ?? '') {
  for (const folder of path.split(delimiter)) {
    if (folder === '') continue;
    const file = join(folder, command);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not here: the next folder.
    }
  }
  return null;
}

// ---- Dependencies -----------------------------------------------------------------------------------------------

function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  }
}

/**
 * Installed part of package-lock.json: 'all', 'production' or 'none'. npm writes .package-lock.json at the end of an install,
 * so an interrupted one counts as none.
 */
function compareWithLock(lockText, installedText) {
  const installed = JSON.parse(installedText).packages ?? {};
  let scope = 'all';
  for (const [path, wanted] of Object.entries(JSON.parse(lockText).packages ?? {})) {
    if (path === '') continue;
    const found = installed[path];
    if (found !== undefined && found.version === wanted.version) continue;
    if (found === undefined && (wanted.optional || wanted.devOptional)) continue;
    if (!wanted.dev) return 'none';
    scope = 'production';
  }
  return scope;
}

function lockText() {
  const text = readText(join(root, 'package-lock.json'));
  if (text === null)
    throw new Missing(`package-lock.json is missing in ${root}: type git checkout package-lock.json`);
  return text;
}

function fingerprint(installedText) {
  return createHash('sha256').update(lockText()).update('\0').update(installedText).digest('hex');
}

function writeStamp(scope) {
  const installedText = readText(join(modules, '.package-lock.json'));
  if (installedText === null) return;
  try {
    writeFileSync(stampFile, `${fingerprint(installedText)} ${scope}\n`);
  } catch (error) {
    // A read-only node_modules: without the stamp the comparison is repeated next time, which is only slower.
    if (!NOT_WRITABLE.includes(error.code)) throw error;
  }
}

/**
 * 'all', 'production' or 'none'. The stamp counts until a lock file changes: on some machines npm installs other packages
 * than the lock names.
 */
function installedScope() {
  const installedText = readText(join(modules, '.package-lock.json'));
  if (installedText === null) return 'none';
  const [stamp, stampScope] = (readText(stampFile) ?? '').trim().split(' ');
  if (stamp === fingerprint(installedText) && (stampScope === 'all' || stampScope === 'production')) {
    return stampScope;
  }
  try {
    return compareWithLock(lockText(), installedText);
  } catch (error) {
    if (error instanceof SyntaxError) return 'none';
    throw error;
  }
}

/** True when development dependencies are installed: a start of the daemon does not remove them. */
function developmentIsInstalled() {
  try {
    const installed = JSON.parse(readText(join(modules, '.package-lock.json')) ?? '{}').packages ?? {};
    return Object.values(installed).some(({ dev }) => dev === true);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

function dependenciesAreReady() {
  const scope = installedScope();
  return scope === 'all' || (production && scope === 'production');
}

/** PATH without the folders of the outer npm: the inner npm must not run on a Node that it is about to remove. */
function outerPath() {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders
    .filter((folder) => !folder.endsWith(join('node_modules', '.bin')) && !folder.endsWith('node-gyp-bin'))
    .join(delimiter);
}

/**
 * The environment of the inner npm. An outer `npm run` passes its own settings as npm_* (`--silent`, `--workspace`, its
 * prefix …); only those for the registry are passed on.
 */
function npmEnvironment() {
  const passed =
    /^npm_config_(\/\/.*|registry|.*:registry|cache|userconfig|globalconfig|proxy|https?_proxy|noproxy|ca|cafile|cert|key|strict_ssl|offline|prefer_offline|fetch_.*)$/i;
  const entries = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name) || passed.test(name));
  return { ...Object.fromEntries(entries), PATH: outerPath() };
}

function npm(args, advice) {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier'];
  const { status, output } = run('npm', [...args, ...quiet], { env: npmEnvironment() });
  if (status === 0) return;
  throw new Missing(`${output.trimEnd()}\nnpm ${args.join(' ')} failed (see above). ${advice}`);
}

/** Installs the dependencies, and returns which: 'all' or 'production'. */
function installDependencies() {
  const scope = production && !developmentIsInstalled() ? 'production' : 'all';
  const args = ['ci', scope === 'all' ? '--include=dev' : '--omit=dev'];
  print(`installing dependencies (npm ${args.join(' ')}) …`);
  npm(args, 'When the npm registry can be reached again, type: npm ci');
  return scope;
}

// ---- Node -------------------------------------------------------------------------------------------------------

function major(version) {
  return Number(/^v(\d+)\./.exec(version.trim())?.[1] ?? 0);
}

/** Version of the Node of the following npm script, e.g. `v26.1.0`; empty when there is none. */
function nextNodeVersion() {
  if (existsSync(localNode)) {
    if (realpathSync(localNode) === process.execPath) return process.version;
    const local = run(localNode, ['-v']);
    return local.status === 0 ? local.output : '';
  }
  const runsOnLocal = process.execPath.startsWith(modules + sep);
  if (!runsOnLocal) return process.version;
  const machine = run('node', ['-v'], { env: npmEnvironment() });
  return machine.status === 0 ? machine.output : '';
}

function nodeIsReady() {
  return major(nextNodeVersion()) >= OLDEST_NODE;
}

/** Installs the compiler's library that Node needs and a bare Debian lacks, or throws with advice. False for another cause. */
function nodeRunsWithItsLibrary() {
  const { output } = run(localNode, ['-v']);
  if (!output.includes('libatomic.so.1')) return false;
  const mayInstall = findOnPath('apt-get') !== null && process.getuid?.() === 0;
  const failed = mayInstall ? installPackage('libatomic1') : output;
  if (failed === null && nodeIsReady()) return true;
  throw new Missing(
    `${failed ?? output}\nNode ${INSTALLED_NODE} needs libatomic. Type: sudo apt-get install libatomic1`,
  );
}

function installNode() {
  const found = nextNodeVersion().trim() || 'no working node';
  const spec = `node@${INSTALLED_NODE}`;
  print(
    `installing Node ${INSTALLED_NODE} into node_modules (npm i --no-save ${spec}; this machine has ${found}) …`,
  );
  // Without the omit, npm would add the development dependencies that a production install omits.
  const scope = installedScope() === 'production' ? ['--omit=dev'] : ['--include=dev'];
  const advice = `Install Node ${OLDEST_NODE} or newer, see https://nodejs.org/en/download`;
  npm(['i', '--no-save', '--no-package-lock', ...scope, spec], advice);
  if (nodeIsReady() || nodeRunsWithItsLibrary()) return;
  // The package fetches its binary in an install script, which an npm that ignores scripts has not run.
  const installer = run(process.execPath, ['installArchSpecificPackage.js'], {
    cwd: join(modules, 'node'),
    env: npmEnvironment(),
  });
  if (!nodeIsReady() && !nodeRunsWithItsLibrary()) {
    throw new Missing(
      `${installer.output.trimEnd()}\n${spec} was installed but does not run here. ${advice}`,
    );
  }
}

// ---- redis-server -----------------------------------------------------------------------------------------------

const REDIS_WANTED = `redis-server ${OLDEST_REDIS.join('.')} or newer`;

function redisAdvice() {
  if (findOnPath('redis-server') !== null) return `Put ${REDIS_WANTED} first on PATH.`;
  if (process.platform === 'darwin') return 'Type: brew install redis';
  if (findOnPath('apt-get') !== null) return 'Type: sudo apt-get install redis-server';
  return `Install ${REDIS_WANTED} with this system's package manager.`;
}

/** Problem of redis-server; null when a fit one is on PATH, or none is needed. */
function redisProblem() {
  if (withoutRedis) return null;
  const file = findOnPath('redis-server');
  if (file === null) return 'redis-server is missing';
  const { status, output } = run(file, ['--version']);
  const version = /\bv=((\d+)\.(\d+)\S*)/.exec(output);
  if (status !== 0 || version === null) {
    return `${file} --version printed ${JSON.stringify(output.trim())}, expected a version`;
  }
  const [oldestMajor, oldestMinor] = OLDEST_REDIS;
  const [majorFound, minorFound] = [Number(version[2]), Number(version[3])];
  if (majorFound > oldestMajor || (majorFound === oldestMajor && minorFound >= oldestMinor)) return null;
  return `${file} has version ${version[1]}, but ${REDIS_WANTED} is needed`;
}

/** Throws where the system's packages cannot or must not be used for Redis. */
function refuseToInstallRedis(problem) {
  if (findOnPath('redis-server') !== null) throw new Missing(`${problem}. ${redisAdvice()}`);
  const reason = findOnPath('apt-get') === null ? 'no apt-get' : process.getuid?.() === 0 ? null : 'not root';
  if (reason !== null)
    throw new Missing(`${problem} and cannot be installed here (${reason}). ${redisAdvice()}`);
  // Installed earlier: its service may be in use, and our stop would end it.
  const packaged = '/usr/bin/redis-server';
  if (existsSync(packaged)) throw new Missing(`${packaged} exists but is not on PATH: add /usr/bin to PATH.`);
}

/** Stops a system service: packages enable theirs, but scripts start their own. */
function endService(name) {
  if (existsSync('/run/systemd/system')) {
    run('systemctl', ['disable', '--now', `${name}.service`]);
    print(`the system service ${name} that came with the package is stopped and disabled`);
  } else if (run('service', [name, 'status']).status === 0) {
    run('service', [name, 'stop']);
    print(`the system service ${name} that came with the package is stopped`);
  }
}

/** Installs system packages. Returns the output of a failure, else null. */
function installPackage(...names) {
  print(`installing ${names.join(' ')} as root (apt-get install ${names.join(' ')}) …`);
  // In runlevel 1 the package's scripts do not start the service where there is no systemd.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1', NEEDRESTART_SUSPEND: '1' };
  const lock = ['-o', 'DPkg::Lock::Timeout=300'];
  // A failed update is no reason to stop: the lists may be good enough.
  const update = run('apt-get', ['update'], { env });
  const install = run('apt-get', ['install', '-y', '--no-install-recommends', ...lock, ...names], { env });
  // Without a network only the update reports the error, and it ends with success.
  return install.status === 0 ? null : `${update.output}${install.output}`.trimEnd();
}

function installRedis(problem) {
  refuseToInstallRedis(problem);
  const output = installPackage('redis-server');
  if (output !== null)
    throw new Missing(`${output}\nredis-server could not be installed (see above). ${redisAdvice()}`);
  endService('redis-server');
  const after = redisProblem();
  if (after !== null) throw new Missing(`${after}. ${redisAdvice()}`);
}

// ---- Optional parts ---------------------------------------------------------------------------------------------

/** Changes a daemon's clock in `npm run chaos`, which works without it where it cannot be installed, and reports that. */
const FAKETIME = { name: 'faketime', there: ['faketime'] };

/**
 * Debian packages of services for some tests beside Redis: `there` is their location (commands, or absolute paths), `service`
 * their service. `test/support/optional-parts.ts` has the tests' side of this list.
 */
const OPTIONAL_PACKAGES = [
  { name: 'postgresql', there: ['initdb', '/usr/lib/postgresql'], service: 'postgresql' },
  { name: 'chromium', there: ['chromium', 'chromium-browser', 'google-chrome'] },
  { name: 'prometheus', there: ['promtool'], service: 'prometheus' },
  {
    name: 'prometheus-alertmanager',
    there: ['prometheus-alertmanager'],
    service: 'prometheus-alertmanager',
  },
  { name: 'golang-go', there: ['go'] },
  { name: 'python3', there: ['python3'] },
  { name: 'python3-aiosmtpd', there: ['/usr/lib/python3/dist-packages/aiosmtpd'] },
  { name: 'jsonnet', there: ['jsonnet'] },
  { name: 'gcc', there: ['gcc'] },
  { name: 'libc6-dev', there: ['/usr/include/stdlib.h'] },
  FAKETIME,
];

/** Programs from npm, apart from the dependencies: they are not built for every system, or exist in two versions. */
const OPTIONAL_PROGRAMS = [
  { name: 'an EVM node', spec: '@foundry-rs/anvil@1.7.1', command: 'anvil', folder: '.intentwatch-anvil' },
  { name: 'Node 20', spec: 'node@20', command: 'node', folder: '.intentwatch-node-20', major: 20 },
  { name: 'Node 26', spec: 'node@26', command: 'node', folder: '.intentwatch-node-26', major: 26 },
];

function isThere({ there }) {
  return there.some((place) => (place.startsWith('/') ? existsSync(place) : findOnPath(place) !== null));
}

/** Installs missing packages where possible. Returns the names of those still missing. */
function installPackages(wanted) {
  const missing = wanted.filter((part) => !isThere(part));
  const names = missing.map(({ name }) => name);
  if (missing.length === 0) return [];
  if (findOnPath('apt-get') === null || process.getuid?.() !== 0) return names;
  const output = installPackage(...names);
  if (output !== null) {
    process.stderr.write(`${output}\n${names.join(', ')} could not be installed (see above)\n`);
    return names;
  }
  for (const { service } of missing) if (service !== undefined) endService(service);
  return [];
}

/** True when a program is installed here, or, for a version of Node, anywhere on PATH. */
function programIsReady({ command, folder, major: wanted }) {
  if (existsSync(join(modules, folder, 'node_modules/.bin', command))) return true;
  if (wanted === undefined) return false;
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((place) => findOnPath(command, place))
    .some((file) => file !== null && major(run(file, ['-v']).output) === wanted);
}

function installProgram({ name, spec, folder }) {
  print(`installing ${name} (npm i ${spec}) …`);
  const target = join(modules, folder);
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, 'package.json'), '{ "private": true }\n');
  npm(['i', '--prefix', target, spec], 'Without it its tests are skipped.');
}

function extraPackages() {
  return all ? OPTIONAL_PACKAGES : chaos ? [FAKETIME] : [];
}

function extrasAreReady() {
  return extraPackages().every(isThere) && (!all || OPTIONAL_PROGRAMS.every(programIsReady));
}

function installExtras() {
  const missing = installPackages(extraPackages());
  if (!all) return;
  for (const program of OPTIONAL_PROGRAMS) if (!programIsReady(program)) installProgram(program);
  if (missing.length === 0) return;
  throw new Missing(
    `missing optional parts: ${missing.join(', ')}. On Debian, type: sudo apt-get install ${missing.join(' ')}`,
  );
}

// ---- One at a time ----------------------------------------------------------------------------------------------

/**
 * Inside the checkout, where only its owner can write: another user could create a name in the folder for temporary files
 * first. Readable by others, because a waiting process reads the holder from it.
 */
const lockFolder = join(root, '.prepare-lock');

/** Errors of a folder in which this user cannot write. */
const NOT_WRITABLE = ['EACCES', 'EPERM', 'EROFS'];

/** The process that holds the lock; null before it has written its pid, or after the lock was released. */
function lockHolder(folder) {
  const pid = Number(readText(join(folder, 'pid')) ?? 0);
  return Number.isInteger(pid) && pid > 0 ? pid : null;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code !== 'ESRCH';
  }
}

/** Removes the lock of a dead process. Another process may have done so first: then the moved lock is put back. */
function removeStaleLock(deadPid) {
  const renamed = `${lockFolder}.${process.pid}`;
  try {
    renameSync(lockFolder, renamed);
  } catch (error) {
    if (NOT_WRITABLE.includes(error.code)) throw notWritable(error);
    return;
  }
  if (lockHolder(renamed) !== deadPid && !existsSync(lockFolder)) renameSync(renamed, lockFolder);
  else rmSync(renamed, { recursive: true, force: true });
}

function notWritable({ code }) {
  return new Missing(
    `${root} cannot be written (${code}), so nothing can be installed in it. As its owner, type: node scripts/prepare.mjs`,
  );
}

/** Several npm scripts may start at once in one checkout; only one of them installs. */
async function takeLock() {
  const started = performance.now();
  let reported = false;
  let readsWithoutHolder = 0;
  for (;;) {
    try {
      mkdirSync(lockFolder, { mode: 0o755 });
      writeFileSync(join(lockFolder, 'pid'), `${process.pid}\n`, { mode: 0o644 });
      process.on('exit', () => rmSync(lockFolder, { recursive: true, force: true }));
      return;
    } catch (error) {
      if (NOT_WRITABLE.includes(error.code)) throw notWritable(error);
      if (error.code !== 'EEXIST') throw error;
    }
    const holder = lockHolder(lockFolder);
    readsWithoutHolder = holder === null ? readsWithoutHolder + 1 : 0;
    // A process that died between making the folder and writing its pid never identifies itself.
    const isStale = holder === null ? readsWithoutHolder > 20 : !isAlive(holder);
    if (isStale) {
      removeStaleLock(holder);
    } else if (holder !== null && !reported) {
      print(`waiting for process ${holder}, which is installing in this checkout …`);
      reported = true;
    }
    if (performance.now() - started > LOCK_WAIT_MS) {
      throw new Missing(
        `${lockFolder} has been held for too long. If nothing is being installed here, type: rm -r ${lockFolder}`,
      );
    }
    await wait(LOCK_CHECK_MS);
  }
}

async function main() {
  const redis = redisProblem();
  if (production && redis !== null) {
    process.stderr.write(
      `warning: ${redis}. It is needed unless the config names redis.url. ${redisAdvice()}\n`,
    );
  }
  if ((production || redis === null) && dependenciesAreReady() && nodeIsReady() && extrasAreReady()) return;
  await takeLock();
  // All of it again: the earlier holder of the lock may have done it.
  const problem = production ? null : redisProblem();
  if (problem !== null) installRedis(problem);
  if (!dependenciesAreReady()) {
    writeStamp(installDependencies());
  }
  if (!nodeIsReady()) {
    const scope = installedScope();
    installNode();
    writeStamp(scope);
  }
  installExtras();
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Missing)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
