import { hash } from 'node:crypto';
import { z } from 'zod';
import type { ProvableDomain, QuoteDomain } from '../domain/quotes/quote-signature.ts';
import {
  DISCOVERED_CHAINS,
  DISCOVERED_TOKENS,
  type DiscoveredChain,
  type DiscoveredToken,
} from '../domain/transfers/discovered.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { reportToOperator } from './operator-event.ts';
import { INTEGER_TEXT, JSON_TEXT, type OnForeign, RedisStore, readHash } from './stored.ts';

/** The upstream's lists of chains and tokens, each with the time it was read (Redis time, ms; null for never). */
export type StoredDirectory = DirectoryStamps & {
  chains: DiscoveredChain[];
  tokens: DiscoveredToken[];
};

/** The last read of each list (Redis time, ms). */
export type DirectoryStamps = { chainsAtMs: number | null; tokensAtMs: number | null };

const AT = INTEGER_TEXT.optional().transform((atMs) => atMs ?? null);

const STORED = z.object({
  chains: JSON_TEXT.pipe(DISCOVERED_CHAINS).optional().default([]),
  tokens: JSON_TEXT.pipe(DISCOVERED_TOKENS).optional().default([]),
  chainsAtMs: AT,
  tokensAtMs: AT,
});

const NOTHING: StoredDirectory = { chains: [], tokens: [], chainsAtMs: null, tokensAtMs: null };

/** The chains and tokens that the upstream reported, shared by all processes. */
export class DirectoryStore extends RedisStore {
  readonly #process: string;

  /** `process` is the process with whose end its turn ends (queues/heartbeat.ts); "" for one without a heartbeat. */
  constructor(redis: RedisClient, keys: Keys, options: { onForeign?: OnForeign; process?: string } = {}) {
    super(redis, keys, options);
    this.#process = options.process ?? '';
  }

  /** Reads both lists. A list of another shape counts as never read, and is fetched anew. */
  async read(): Promise<StoredDirectory> {
    const { directory } = this.keys;
    const { value, foreign } = readHash(STORED, await this.redis.hgetall(directory));
    if (foreign === null) return value ?? NOTHING;
    const { fields, reason } = foreign;
    this.onForeign({ what: 'directory', where: directory, reason });
    await this.redis.hdel(directory, ...fields, ...fields.map((field) => `${field}AtMs`));
    return this.read();
  }

  async stamps(): Promise<DirectoryStamps> {
    const [chainsAtMs, tokensAtMs] = await this.redis.hmget(this.keys.directory, 'chainsAtMs', 'tokensAtMs');
    const atMs = (text: string | null | undefined): number | null =>
      INTEGER_TEXT.safeParse(text ?? '').data ?? null;
    return { chainsAtMs: atMs(chainsAtMs), tokensAtMs: atMs(tokensAtMs) };
  }

  async writeChains(chains: readonly DiscoveredChain[], nowMs: number): Promise<void> {
    const text = JSON.stringify(chains);
    await this.redis.hset(this.keys.directory, 'chains', text, 'chainsAtMs', String(nowMs));
  }

  async writeTokens(tokens: readonly DiscoveredToken[], nowMs: number): Promise<void> {
    const text = JSON.stringify(tokens);
    await this.redis.hset(this.keys.directory, 'tokens', text, 'tokensAtMs', String(nowMs));
  }

  /** True when it is this process's turn to fetch the lists; no other process gets a turn for so long from now. */
  async claimTurn(forMs: number): Promise<boolean> {
    const turn = `turn ${this.#process}`;
    return (await this.redis.set(this.keys.directoryTurn, turn, 'PX', forMs, 'NX')) === 'OK';
  }

  /** Ends this process's turn. The wait is that of the upstream, and outlives the process. */
  async delayNextTurn(forMs: number): Promise<void> {
    await this.redis.set(this.keys.directoryTurn, 'waiting', 'PX', Math.round(forMs), 'XX');
  }
}

/** A deployment, and the domain of its quotes; `isExplicit`: the config names it. */
export type DeploymentDomain = { baseUrl: string; quoteDomain: QuoteDomain & { isExplicit: boolean } };

type Stored = { redis: RedisClient; keys: Keys };

/** The provable domain of a deployment, whose proof all processes share and no restart loses. */
export function storedDomain(stored: Stored, deployment: DeploymentDomain): ProvableDomain {
  const { redis, keys } = stored;
  const { name, version, isExplicit } = deployment.quoteDomain;
  const field = fieldOf(deployment);
  let isStored = false;
  return {
    name,
    version,
    isProven: async () => {
      isStored ||= (await redis.hexists(keys.quoteDomains, field)) === 1;
      return isStored || isExplicit;
    },
    prove: async () => {
      if (isStored) return;
      await redis.hset(keys.quoteDomains, field, '1');
      isStored = true;
    },
  };
}

/** Reports that quotes cannot be verified, once for each domain of a deployment. */
export async function reportUnproven(
  stored: Stored,
  deployment: DeploymentDomain,
  reason: string,
): Promise<void> {
  const { name, version } = deployment.quoteDomain;
  await reportToOperator(stored, {
    name: 'quote-domain',
    word: 'quote_domain_unproven',
    mark: [fieldOf(deployment)],
    isOnce: true,
    record: { setting: 'upstream.quoteDomain', quoteDomain: { name, version }, reason },
  });
}

function fieldOf({ baseUrl, quoteDomain: { name, version } }: DeploymentDomain): string {
  return hash('sha256', JSON.stringify([new URL(baseUrl).href, name, version]), 'hex').slice(0, 32);
}
