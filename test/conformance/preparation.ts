import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import type { Wire } from '../../sandbox/quotes/quote-shape.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { eventually } from '../support/eventually.ts';
import type { Material } from './suite/material.ts';
import type { Stage, Target } from './suite/rule.ts';

/** Services for the suite. */
export type Preparation = {
  at: (stage: Stage) => Promise<Target>;
  close: () => Promise<void>;
};

const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const USDT_ETHEREUM = '0xdAC17F958D2ee523a2206206994597C13D831ec7';
const SOLANA = { chainId: 1399811149, token: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v' };
const TRON = { chainId: 728126428, token: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' };
const AMOUNT = '100000000';

const source = { chainId: 8453, token: USDC_BASE, funder: WALLET };
const destination = { chainId: 10, token: USDC_OPTIMISM, recipient: WALLET };

export const ROUTE: Material['route'] = { source, destination, amount: AMOUNT };

const VAULT_REQUEST = {
  sourceChainId: source.chainId,
  destinationChainId: destination.chainId,
  sourceToken: source.token,
  destinationToken: destination.token,
  amount: AMOUNT,
  recipient: WALLET,
};

const page = z.object({ results: z.array(z.looseObject({ id: z.string(), status: z.string() })) });

/** Starts two sandboxes, a slow one and one where everything has ended, and gathers the suite's material from them. */
export async function prepareSandboxes(wire: Wire): Promise<Preparation> {
  const open = new Sandbox({ wire, transfersPerSecond: 0 });
  const finished = new Sandbox({ wire, timeScale: 2_000, transfersPerSecond: 0, pastTransfers: 300 });
  await Promise.all([open.start(), finished.start()]);
  await eventually('the end of all transfers', () => finished.pace().livingTransfers === 0);
  const funderKey = generatePrivateKey();
  const targets = {
    open: targetOf(open, common(open, funderKey)),
    finished: targetOf(finished, await endedMaterial(finished, funderKey)),
  };
  return {
    at: async (stage) => {
      await control(finished, 'DELETE', '/faults');
      if (stage === 'open' || stage === 'finished') return targets[stage];
      const { failing: code, ...more } = stage;
      await control(finished, 'POST', '/faults', { type: 'error', code, ...more });
      return targets.finished;
    },
    close: async () => void (await Promise.all([open.close(), finished.close()])),
  };
}

function targetOf({ url, apiKey }: Sandbox, material: Material): Target {
  return { baseUrl: url, apiKey, material };
}

function common({ quotesUrl, apiKey }: Sandbox, funderKey: `0x${string}`): Material {
  return {
    route: ROUTE,
    swapRoute: { ...ROUTE, destination: { chainId: 1, token: USDT_ETHEREUM, recipient: WALLET } },
    solanaRoute: { ...ROUTE, source: { ...SOLANA, funder: SOLANA.token } },
    tronRoute: { ...ROUTE, destination: { ...TRON, recipient: TRON.token } },
    quotesUrl,
    funder: { key: funderKey, spender: '0x1111111111111111111111111111111111111111' },
    vaultRequest: VAULT_REQUEST,
    expiredKey: `${apiKey}-expired`,
    forbiddenKey: `${apiKey}-forbidden`,
    unattributedKey: `${apiKey}-unattributed`,
  };
}

/** Ended material: transfers that lived by themselves, and an unfunded quote and vault. */
async function endedMaterial(sandbox: Sandbox, funderKey: `0x${string}`): Promise<Material> {
  const { wallets, quotes, gaslessJobs, vaults } = sandbox.subjects();
  const wallet = firstOf(wallets, (address) => address.startsWith('0x'));
  const intentOf = async (status: string): Promise<`0x${string}`> => {
    const { results } = await callSandbox(
      sandbox,
      `/v1/intents/status?wallet=${wallet}&status=${status}`,
      page,
    );
    return `0x${firstOf(results, () => true).id.slice('intent:0x'.length)}`;
  };
  const inStatus = async (filter: string, ids: readonly string[], status: string): Promise<string> => {
    for (const id of ids) {
      const { results } = await callSandbox(sandbox, `/v1/intents/status?${filter}=${id}`, page);
      if (results[0]?.status === status) return id;
    }
    throw new Error(`the sandbox has no ${filter} that is ${status}`);
  };
  const job = z.object({ data: z.object({ status: z.string(), permitTxHash: z.string().optional() }) });
  /** A job with a permit: those of ERC-3009 show one member less. */
  const jobIn = async (status: string): Promise<string> => {
    for (const id of gaslessJobs) {
      const { data } = await callSandbox(sandbox, `/deposit-gateway/v1/gasless/jobs/${id}`, job);
      if (data.status === status && data.permitTxHash !== undefined) return id;
    }
    throw new Error(`the sandbox has no gateway job that is ${status}`);
  };
  return {
    ...common(sandbox, funderKey),
    wallet,
    filledIntent: await intentOf('settled'),
    refundedIntent: await intentOf('refunded'),
    fundedQuote: await inStatus('quoteId', quotes, 'submitted'),
    publishedJob: await inStatus('jobId', gaslessJobs, 'published'),
    failedJob: await inStatus('jobId', gaslessJobs, 'failed'),
    ...(await funded(sandbox)),
    gatewayJob: await jobIn('COMPLETED'),
    failedGatewayJob: await jobIn('FAILED'),
    vault: await publishedVault(sandbox, vaults),
    ...(await expired(sandbox, privateKeyToAccount(funderKey).address)),
  };
}

async function publishedVault(sandbox: Sandbox, vaults: readonly { address: string; chainId: number }[]) {
  const response = z.object({ data: z.object({ state: z.string() }) });
  for (const vault of vaults) {
    const path = `/deposit-gateway/v2/depositAddresses/${vault.address}?sourceChainId=${vault.chainId}`;
    if ((await callSandbox(sandbox, path, response)).data.state === 'PUBLISHED') return vault;
  }
  throw new Error('the sandbox has no published vault');
}

/** A quote between two symbols and a vault as a deposit address, both funded and filled. */
async function funded(sandbox: Sandbox): Promise<Pick<Material, 'swappedQuote' | 'depositAddressWallet'>> {
  const quoted = z.object({ id: z.string().startsWith('quote:') });
  // On a busy machine, both expire before they are funded.
  const isFunded = async (body: object): Promise<boolean> =>
    (await controlled(sandbox, 'POST', '/fund', { body, but: 410 })).ok;
  const quote = await eventually('a quote that is funded in its time', async () => {
    const made = await callSandbox(sandbox, '/v1/quotes', quoted, {
      type: 'exact-in',
      dappId: 'conformance',
      source: { ...source, amount: AMOUNT },
      destination: { chainId: 1, token: USDT_ETHEREUM, recipient: WALLET },
    });
    return (await isFunded({ quoteId: made.id })) ? made : null;
  });
  const vaulted = z.object({ data: z.object({ vaultAddress: z.string() }) });
  await eventually('a vault that is funded in its time', async () => {
    const { data } = await callSandbox(
      sandbox,
      '/v1/deposit-gateway/deposit-addresses',
      vaulted,
      VAULT_REQUEST,
    );
    const { vaultAddress } = data;
    return isFunded({ vaultAddress, chainId: source.chainId, depositAddress: true });
  });
  await eventually('the end of what was funded', () => sandbox.pace().livingTransfers === 0);
  return { swappedQuote: quote.id.slice('quote:'.length), depositAddressWallet: WALLET };
}

async function expired(
  sandbox: Sandbox,
  funder: string,
): Promise<Pick<Material, 'expiredQuote' | 'expiredVault'>> {
  const quoted = z.object({ id: z.string(), expiresAt: z.number() });
  const request = { type: 'exact-in', dappId: 'conformance', source: { ...source, funder, amount: AMOUNT } };
  const quote = await callSandbox(sandbox, '/v1/quotes', quoted, { ...request, destination });
  const vaulted = z.object({ data: z.object({ vaultAddress: z.string(), deadline: z.number() }) });
  const created = await callSandbox(sandbox, '/v1/deposit-gateway/deposit-addresses', vaulted, VAULT_REQUEST);
  const end = Math.max(quote.expiresAt, created.data.deadline);
  await eventually('the quote and the vault to expire', () => Date.now() / 1000 >= end);
  return {
    expiredQuote: quote.id,
    expiredVault: { address: created.data.vaultAddress, chainId: source.chainId },
  };
}

async function callSandbox<T>(
  sandbox: Sandbox,
  path: string,
  schema: z.ZodType<T>,
  body?: unknown,
): Promise<T> {
  const response = await fetch(sandbox.url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'x-api-key': sandbox.apiKey, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return schema.parse(await response.json());
}

async function control(sandbox: Sandbox, method: string, path: string, body?: unknown): Promise<void> {
  await controlled(sandbox, method, path, { body });
}

/** Calls the control API; throws on an error answer, except one. */
async function controlled(
  sandbox: Sandbox,
  method: string,
  path: string,
  { body, but }: { body?: unknown; but?: number },
): Promise<Response> {
  const response = await fetch(sandbox.controlUrl + path, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  if (!response.ok && response.status !== but)
    throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response;
}

function firstOf<T>(values: readonly T[], fits: (value: T) => boolean): T {
  const found = values.find(fits);
  if (found === undefined) throw new Error('the sandbox has nothing of the kind');
  return found;
}
