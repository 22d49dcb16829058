import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort } from './port.ts';

/** Debian keeps them out of `PATH`, one folder per version. */
const DEBIAN = '/usr/lib/postgresql';

/** The folder of `initdb` and `postgres`, or null where Postgres is not installed: Debian's package is `postgresql`. */
export function postgresFolder(): string | null {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
  ];
  return folders.find((folder) => existsSync(join(folder, 'initdb'))) ?? null;
}

type Owner = { uid?: number; gid?: number };

/** Postgres does not run as root: there its package's own user runs it. */
function owner(): Owner {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout),
  );
  if (!uid || !gid) throw new Error('found no user postgres, expected the one of the package postgresql');
  return { uid, gid };
}

/** A Postgres with a folder and a port of its own. */
export class PostgresProcess {
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  readonly url: string;

  private constructor(parts: { folder: string; child: ChildProcess; port: number }) {
    this.#folder = parts.folder;
    this.#child = parts.child;
    this.#exited = new Promise((resolve) => parts.child.once('exit', () => resolve()));
    this.url = `postgres://postgres@127.0.0.1:${parts.port}/postgres`;
  }

  /** Makes a cluster and starts it; resolves when it takes connections. It does not wait for the disk: it is never killed. */
  static async start(): Promise<PostgresProcess> {
    const bin = postgresFolder();
    if (bin === null) throw new Error('found no initdb, expected Postgres: apt-get install postgresql');
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-postgres-'));
    const user = owner();
    if (user.uid !== undefined && user.gid !== undefined) await chown(folder, user.uid, user.gid);
    const data = join(folder, 'data');
    const made = spawnSync(
      join(bin, 'initdb'),
      ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
      { ...user, cwd: folder, encoding: 'utf8' },
    );
    if (made.status !== 0) throw new Error(`initdb ended with ${made.status}: ${made.stderr}`);
    const port = await freePort();
    const settings = {
      port: String(port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      fsync: 'off',
    };
    const args = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
    const child = spawn(join(bin, 'postgres'), ['-D', data, ...args], {
      ...user,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const server = new PostgresProcess({ folder, child, port });
    await server.#isReady();
    return server;
  }

  async #isReady(): Promise<void> {
    const { stderr } = this.#child;
    if (stderr === null) throw new Error('postgres has no output to read');
    let said = '';
    await new Promise<void>((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', (code) => reject(new Error(`postgres ended with ${code}: ${said}`)));
      stderr.on('data', (chunk: Buffer) => {
        said = `${said}${chunk.toString()}`.slice(-4_000);
        if (said.includes('ready to accept connections')) resolve();
      });
    });
  }

  /** Ends the server when the last client has gone, and removes its data. */
  async close(): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.#exited;
    await rm(this.#folder, { recursive: true, force: true });
  }
}
