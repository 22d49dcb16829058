import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { DemoReceiver } from '../../demo/receiver.ts';
import { testPrefix } from '../../test/support/daemon.ts';
import { Program } from '../../test/support/program.ts';
import { RedisProcess } from '../../test/support/redis-process.ts';
import { SANDBOX_KEY, SandboxProcess } from '../../test/support/sandbox-process.ts';
import { SeenTransfers } from './seen.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

/** Number of a sandbox's wallets, their skew, and a seed. */
export type WorldOptions = { wallets: number; skew: number; seed: number };

/** Members of a config beside the wallets of the sandbox. */
export type Named = { requestsPerSecond: number; intents?: readonly string[] };

/** A sandbox in real time, an empty Redis, a receiver, and daemons as processes. Their configs have no `polling`. */
export class World {
  readonly sandbox: SandboxProcess;
  readonly wallets: readonly string[];
  readonly reported: SeenTransfers;
  readonly #closers: (() => Promise<unknown>)[];
  readonly #config: (named: Named) => string;
  readonly #folder: string;
  #daemons = 0;

  private constructor(deps: {
    sandbox: SandboxProcess;
    wallets: readonly string[];
    reported: SeenTransfers;
    closers: (() => Promise<unknown>)[];
    config: (named: Named) => string;
    folder: string;
  }) {
    this.sandbox = deps.sandbox;
    this.wallets = deps.wallets;
    this.reported = deps.reported;
    this.#closers = deps.closers;
    this.#config = deps.config;
    this.#folder = deps.folder;
  }

  static async create({ wallets: count, skew, seed }: WorldOptions): Promise<World> {
    const redis = await RedisProcess.create();
    const closers: (() => Promise<unknown>)[] = [() => redis.close()];
    const program = await Program.start(MAIN, [
      ...['sandbox', '--port=0', '--control-port=0', '--transfers-per-second=0', '--time-scale=1'],
      ...[`--wallets=${count}`, `--wallet-skew=${skew}`, `--seed=${seed}`],
    ]);
    closers.push(() => program.end('SIGKILL'));
    const sandbox = await SandboxProcess.of(program);
    const { wallets } = await sandbox.subjects();
    const reported = new SeenTransfers();
    const receiver = new DemoReceiver({
      secret: SECRET,
      onWebhook: ({ event: { timestamp, data } }) =>
        reported.note(data.subject.id, data.status ?? '', Date.parse(timestamp)),
    });
    await receiver.start();
    closers.push(() => receiver.close());
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
    closers.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    const prefix = testPrefix();
    const config = ({ requestsPerSecond, intents = [] }: Named): string =>
      stringify({
        upstream: { baseUrl: sandbox.url, apiKey: SANDBOX_KEY, requestsPerSecond },
        redis: { url: redis.url, prefix },
        server: { host: '127.0.0.1', port: 0 },
        receivers: [
          {
            name: 'backend',
            type: 'webhook',
            url: receiver.url,
            secrets: [SECRET],
            allowPrivateNetwork: true,
            allowInsecure: true,
          },
        ],
        subscriptions: [
          { name: 'treasury', wallets, receivers: ['backend'] },
          ...(intents.length > 0 ? [{ name: 'orders', intents, receivers: ['backend'] }] : []),
        ],
      });
    return new World({ sandbox, wallets, reported, closers, config, folder });
  }

  async daemon(named: Named): Promise<Program> {
    const file = join(this.#folder, `intentwatch-${this.#daemons++}.yaml`);
    await writeFile(file, this.#config(named));
    const program = await Program.start(MAIN, ['start', '--config', file]);
    this.#closers.push(() => program.end('SIGKILL'));
    await program.line(/"msg":"daemon.started"/);
    return program;
  }

  async close(): Promise<void> {
    for (const close of this.#closers.reverse()) await close();
  }
}
