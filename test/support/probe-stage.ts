import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { ProbeReport } from '../../src/operations/probe/probe-report.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { RelayLease } from '../../src/store/lease.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { type Ran, runCommand } from './command.ts';
import { configYaml, testPrefix } from './daemon.ts';

/** The body of a price request at a sandbox. */
export const PRICE_REQUEST = {
  type: 'exact-in',
  dappId: 'intentwatch',
  source: {
    chainId: 8453,
    token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    funder: '0x52908400098527886e0f7030069857d2e4169ee7',
    amount: '1000000',
  },
  destination: {
    chainId: 10,
    token: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85',
    recipient: '0x52908400098527886e0f7030069857d2e4169ee7',
  },
};

/** The `upstream` section and the subscribed subjects of a probe's config. */
type ProbeConfig = {
  upstream: { baseUrl: string; apiKey?: string | undefined } & Record<string, unknown>;
  subjects: object;
};

/** A probe as a user runs it, beside the Redis of a daemon whose budget is so large that nothing waits. */
export class ProbeStage {
  readonly #folder: string;
  readonly #redis: ReturnType<typeof connect>;
  readonly #lease: RelayLease;
  readonly prefix = testPrefix();

  private constructor(folder: string, redis: ReturnType<typeof connect>) {
    this.#folder = folder;
    this.#redis = redis;
    this.#lease = new RelayLease(redis, new Keys(this.prefix));
  }

  static async start(budget = 5_000): Promise<ProbeStage> {
    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    const stage = new ProbeStage(await mkdtemp(join(tmpdir(), 'intentwatch-probe-')), redis);
    const budgets = { status: budget, gateway: budget, quotes: budget, 'partner-quotes': budget };
    await new PlanStore(redis, new Keys(stage.prefix)).setBudgets(budgets);
    return stage;
  }

  /** Runs `probe` with `--out`. */
  async probe(config: ProbeConfig, args: readonly string[] = []): Promise<Ran & { report: ProbeReport }> {
    const { upstream, subjects } = config;
    const yaml = configYaml({
      baseUrl: upstream.baseUrl,
      redisUrl: inject('redisUrl'),
      prefix: this.prefix,
      receivers: { hook: { url: 'http://127.0.0.1:9/' } },
      subscriptions: [{ name: 'all', receivers: ['hook'], ...subjects }],
      upstream,
    });
    const [file, out] = ['intentwatch.yaml', 'report.json'].map((name) => join(this.#folder, name));
    if (file === undefined || out === undefined) throw new Error('two names make two paths');
    await writeFile(file, yaml);
    await rm(out, { force: true });
    await this.#lease.hold();
    const ran = await runCommand(['probe', '--config', file, '--out', out, ...args]);
    const report: ProbeReport = JSON.parse(await readFile(out, 'utf8'));
    return { ...ran, report };
  }

  /** Writes a file and returns its path. */
  async file(name: string, value: unknown): Promise<string> {
    const path = join(this.#folder, name);
    await writeFile(path, JSON.stringify(value));
    return path;
  }

  async close(): Promise<void> {
    await this.#lease.release();
    this.#redis.disconnect();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
