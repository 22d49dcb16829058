import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PARTS } from './optional-parts.ts';
import { freePort } from './port.ts';

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

/**
 * The environment of Postgres. Under faketime each process passes the name of its shared memory on, which another user cannot
 * open; that user's process then ends where a killed process of the same number left its own behind. Without the name it goes
 * without shared memory.
 */
function environment(): NodeJS.ProcessEnv {
  const { FAKETIME_SHARED: _, ...env } = process.env;
  return env;
}

/** Options of a test's Postgres: with `tls`, it takes connections with TLS and without. */
export type PostgresOptions = { tls?: { cert: string; key: string } };

/** A Postgres with a folder and a port of its own. */
export class PostgresProcess {
  readonly #folder: string;
  readonly #port: number;
  readonly #settings: Record<string, string>;
  #child: ChildProcess | null = null;
  #exited: Promise<void> = Promise.resolve();
  readonly url: string;

  private constructor(options: { folder: string; port: number; settings: Record<string, string> }) {
    this.#folder = options.folder;
    this.#port = options.port;
    this.#settings = options.settings;
    this.url = `postgres://postgres@127.0.0.1:${options.port}/postgres`;
  }

  /** Makes and starts a cluster; resolves when it takes connections. It does not wait for the disk: the system outlives it. */
  static async start({ tls }: PostgresOptions = {}): Promise<PostgresProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-postgres-'));
    const user = owner();
    const give = async (path: string): Promise<void> => {
      if (user.uid !== undefined && user.gid !== undefined) await chown(path, user.uid, user.gid);
    };
    await give(folder);
    const data = join(folder, 'data');
    const made = spawnSync(
      join(installedFolder(), 'initdb'),
      ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
      { ...user, cwd: folder, env: environment(), encoding: 'utf8' },
    );
    if (made.status !== 0) throw new Error(`initdb ended with ${made.status}: ${made.stderr}`);
    for (const [name, content] of Object.entries({ 'server.crt': tls?.cert, 'server.key': tls?.key })) {
      if (content === undefined) continue;
      await writeFile(join(data, name), content, { mode: 0o600 });
      await give(join(data, name));
    }
    const settings = tls === undefined ? {} : { ssl: 'on' };
    const server = new PostgresProcess({ folder, port: await freePort(), settings });
    await server.#run();
    return server;
  }

  /** Kills the server's first process with `kill -9`; the others notice by themselves. Resolves when it is gone. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.#exited;
  }

  async startAgain(): Promise<void> {
    // Processes of the previous server hold its memory until they notice its end.
    for (let tries = 1; ; tries++) {
      try {
        return await this.#run();
      } catch (error) {
        if (tries === 600) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  async #run(): Promise<void> {
    const settings = {
      ...this.#settings,
      port: String(this.#port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      fsync: 'off',
    };
    const args = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
    const child = spawn(join(installedFolder(), 'postgres'), ['-D', join(this.#folder, 'data'), ...args], {
      ...owner(),
      cwd: this.#folder,
      env: environment(),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#child = child;
    this.#exited = new Promise((resolve) => child.once('exit', () => resolve()));
    let output = '';
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`postgres ended with ${code}: ${output}`)));
      child.stderr.on('data', (chunk: Buffer) => {
        output = `${output}${chunk.toString()}`.slice(-4_000);
        if (output.includes('ready to accept connections')) resolve();
      });
    });
  }

  async close(): Promise<void> {
    this.#child?.kill('SIGTERM');
    await this.#exited;
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

function installedFolder(): string {
  const bin = PARTS.postgres.place;
  if (bin === null) throw new Error('found no initdb, expected Postgres: apt-get install postgresql');
  return bin;
}
