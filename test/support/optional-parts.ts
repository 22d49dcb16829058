import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, globSync, readdirSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

// Programs that only some tests run against. `npm run setup:all` (`scripts/prepare.mjs --all`) installs them.

/** One such program: its name for people, and its place; null where this machine has none. */
export type OptionalPart = { name: string; place: string | null };

const ROOT = join(import.meta.dirname, '../..');
const MODULES = join(ROOT, 'node_modules');
const FOLDERS = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');

/** Debian puts the programs of Postgres outside `PATH`, in one folder per version. */
const POSTGRES_VERSIONS = '/usr/lib/postgresql';

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function onPath(...commands: string[]): string | null {
  const files = commands.flatMap((command) => FOLDERS.map((folder) => join(folder, command)));
  return files.find(isProgram) ?? null;
}

function postgresFolder(): string | null {
  const versions = existsSync(POSTGRES_VERSIONS) ? readdirSync(POSTGRES_VERSIONS) : [];
  const newestFirst = versions.sort((a, b) => Number(b) - Number(a));
  const folders = [...FOLDERS, ...newestFirst.map((version) => join(POSTGRES_VERSIONS, version, 'bin'))];
  return folders.find((folder) => existsSync(join(folder, 'initdb'))) ?? null;
}

/** The path of anvil itself: the program in `.bin` only starts it, and leaves it running when it is killed. */
function anvilProgram(): string | null {
  const starter = join(MODULES, '.intentwatch-anvil/node_modules/.bin/anvil');
  if (!existsSync(starter)) return null;
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const folder = dirname(realpathSync(starter));
  const native = join(folder, `../anvil-${process.platform}-${arch}/bin/anvil`);
  return existsSync(native) ? native : realpathSync(starter);
}

/** The Python for which Debian's python3-aiosmtpd is installed. */
function pythonWithSmtp(): string | null {
  const isInstalled = existsSync('/usr/lib/python3/dist-packages/aiosmtpd');
  return isInstalled && isProgram('/usr/bin/python3') ? '/usr/bin/python3' : null;
}

function nodeOf(major: number): string | null {
  const candidates = [
    process.execPath,
    ...FOLDERS.map((folder) => join(folder, 'node')),
    join(MODULES, `.intentwatch-node-${major}/node_modules/.bin/node`),
  ];
  const isOf = (file: string): boolean =>
    spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout?.startsWith(`v${major}.`) === true;
  return candidates.find(isOf) ?? null;
}

/** Every optional part. */
export const PARTS = {
  postgres: { name: 'Postgres', place: postgresFolder() },
  chromium: {
    name: 'Chromium',
    place: process.env.CHROMIUM ?? onPath('chromium', 'chromium-browser', 'google-chrome'),
  },
  prometheus: { name: 'Prometheus', place: onPath('prometheus') },
  promtool: { name: 'promtool', place: onPath('promtool') },
  alertmanager: { name: 'Alertmanager', place: onPath('prometheus-alertmanager') },
  amtool: { name: 'amtool', place: onPath('amtool') },
  jsonnet: { name: 'jsonnet', place: onPath('jsonnet') },
  go: { name: 'Go', place: onPath('go') },
  python: { name: 'Python', place: onPath('python3') },
  pythonWithSmtp: { name: 'aiosmtpd', place: pythonWithSmtp() },
  faketime: { name: 'faketime', place: globSync('/usr/lib/*/faketime/libfaketime.so.1')[0] ?? null },
  gcc: { name: 'gcc', place: existsSync('/usr/include/stdlib.h') ? onPath('gcc') : null },
  anvil: { name: 'anvil', place: anvilProgram() },
  node20: { name: 'Node 20', place: nodeOf(20) },
  node26: { name: 'Node 26', place: nodeOf(26) },
} satisfies Record<string, OptionalPart>;

/** Ends the name of a skipped test; the reporter of skipped tests reads it back. */
export function noteOf(missing: readonly string[]): string {
  return missing.length === 0 ? '' : ` (skipped without ${missing.join(' and ')})`;
}

/** True when a test that needs these parts is skipped here, and the note that then ends its name. */
export function needs(...parts: OptionalPart[]): { skip: boolean; note: string } {
  const missing = parts.filter(({ place }) => place === null).map(({ name }) => name);
  return { skip: missing.length > 0, note: noteOf(missing) };
}

/** Fails the run before its first test where `REQUIRE_ALL=1` is set and a part is missing. */
export default function setup(): void {
  if (process.env.REQUIRE_ALL !== '1') return;
  const missing = Object.values(PARTS).filter(({ place }) => place === null);
  if (missing.length === 0) return;
  const names = missing.map(({ name }) => name).join(', ');
  throw new Error(`REQUIRE_ALL=1, but these parts are missing: ${names}. Type: npm run setup:all`);
}
