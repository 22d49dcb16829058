import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { eventually } from './eventually.ts';
import { freePort } from './port.ts';

/** A redis-server of a group: a master, a replica, a node of a Cluster or a Sentinel. */
export class RedisNode {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #folder: string;
  readonly client: Redis;

  private constructor(port: number, folder: string, args: readonly string[]) {
    this.port = port;
    this.#folder = folder;
    this.#child = spawn('redis-server', [...args], { stdio: 'ignore' });
    this.#exited = new Promise((resolve) => this.#child.once('exit', resolve));
    const host = '127.0.0.1';
    this.client = new Redis({ port, host, retryStrategy: () => 20, maxRetriesPerRequest: null });
    this.client.on('error', () => undefined);
  }

  /** Starts a server with a port and a folder of its own; resolves when it answers. */
  static async start(settings: Record<string, string> = {}): Promise<RedisNode> {
    const [port, folder] = [await freePort(), await newFolder()];
    const all = {
      port: String(port),
      bind: '127.0.0.1',
      dir: folder,
      save: '',
      appendonly: 'yes',
      ...settings,
    };
    const args = Object.entries(all).flatMap(([key, value]) => [`--${key}`, ...value.split(' ')]);
    return RedisNode.#answering(new RedisNode(port, folder, args));
  }

  static async startClusterNode(): Promise<RedisNode> {
    return RedisNode.start({
      'cluster-enabled': 'yes',
      'cluster-port': String(await freePort()),
      'cluster-announce-ip': '127.0.0.1',
      'cluster-node-timeout': '2000',
      'cluster-require-full-coverage': 'no',
    });
  }

  /** Starts a Sentinel that watches a master by itself, and fails it over after `downAfterMs` of silence. */
  static async startSentinel(group: string, master: RedisNode, downAfterMs: number): Promise<RedisNode> {
    const [port, folder] = [await freePort(), await newFolder()];
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${folder}`,
      `sentinel monitor ${group} 127.0.0.1 ${master.port} 1`,
      `sentinel down-after-milliseconds ${group} ${downAfterMs}`,
    ];
    const file = join(folder, 'sentinel.conf');
    await writeFile(file, `${lines.join('\n')}\n`);
    return RedisNode.#answering(new RedisNode(port, folder, [file, '--sentinel']));
  }

  static async #answering(node: RedisNode): Promise<RedisNode> {
    await node.client.ping();
    return node;
  }

  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** Resolves when the server follows another and has all its data. */
  async followed(): Promise<void> {
    await eventually('the replica is in sync', async () =>
      (await this.client.info('replication')).includes('master_link_status:up'),
    );
  }

  async promoted(): Promise<void> {
    await eventually('the replica is promoted', async () =>
      (await this.client.info('replication')).includes('role:master'),
    );
  }

  async close(): Promise<void> {
    this.client.disconnect();
    this.#child.kill('SIGKILL');
    await this.#exited;
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'intentwatch-redis-'));
}
