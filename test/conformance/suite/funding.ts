import { privateKeyToAccount } from 'viem/accounts';
import { ask, bodyOf, type Reply } from './ask.ts';
import { holds, read, text } from './expectation.ts';
import { funderKey } from './quoting.ts';
import { given, type Target } from './rule.ts';
import { type Signed, type Signing, signErc2612, signErc3009, signPermit2, signPermit3 } from './signing.ts';

/** The gasless submits of v1. */
export const SUBMITS = {
  'erc-3009': signErc3009,
  permit2: signPermit2,
  permit3: signPermit3,
} as const;

export type Scheme = keyof typeof SUBMITS;

/** How an authorization differs from one that is right. */
export type Changes = Partial<Pick<Signing, 'key' | 'from' | 'nonce' | 'until' | 'value'>>;

/** Paths of the deposit-vault endpoints. */
export const VAULTS = {
  create: '/v1/deposit-gateway/deposit-addresses',
  erc3009: '/v1/deposit-gateway/submit/erc-3009',
  erc2612: '/v1/deposit-gateway/submit/erc-2612',
  status: '/v1/deposit-gateway/status',
  olderErc3009: '/deposit-gateway/v1/gasless/transferWithAuthorization',
} as const;

/** A payload that funds a quote. */
export async function fundingOf(
  target: Target,
  { quoteId, scheme = 'erc-3009', ...changes }: Changes & { quoteId: string; scheme?: Scheme },
): Promise<Signed & { quoteId: string }> {
  const { route } = target.material;
  const { chainId, token } = route.source;
  const { key, spender } = given(target, 'funder');
  const signing = { key, chainId, token, to: spender, value: BigInt(route.amount) };
  return { quoteId, ...(await SUBMITS[scheme]({ ...signing, ...changes })) };
}

/** Submits a payload that funds a quote. */
export function submit(
  target: Target,
  { payload, scheme = 'erc-3009', key }: { payload: unknown; scheme?: Scheme; key?: string },
): Promise<Reply> {
  const path = `/v1/gasless/submit/${scheme}`;
  return ask(target, { method: 'POST', path, body: payload, ...(key === undefined ? {} : { key }) });
}

/** A vault as the endpoints name it. */
export type VaultPlace = { address: string; chainId: number };

/** Asks for a vault. */
export function askVault(target: Target, body: unknown = given(target, 'vaultRequest')): Promise<Reply> {
  return atVaults(target, { path: VAULTS.create, body });
}

/** A new vault, the record that made it known, and what it was quoted for. */
export async function newVault(
  target: Target,
): Promise<{ place: VaultPlace; record: unknown; amount: bigint }> {
  const reply = await askVault(target);
  holds(reply.status >= 200 && reply.status < 300, `creating a vault: found ${reply.status} ${reply.text}`);
  const record = read(bodyOf(reply, reply.status), 'data');
  const place = { address: text(record, 'vaultAddress'), chainId: target.material.route.source.chainId };
  return { place, record, amount: BigInt(text(record, 'amount')) };
}

/** Asks a deposit-vault endpoint; they need no key. */
export function atVaults(
  target: Target,
  { path, body, query }: { path: string; body?: unknown; query?: Record<string, string> },
): Promise<Reply> {
  return ask(target, {
    path,
    key: null,
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { method: 'POST', body }),
  });
}

/** A body that funds a vault by an ERC-3009 transfer. */
export async function vaultTransfer(
  target: Target,
  { vault, value, ...changes }: Changes & { vault: VaultPlace; value: bigint },
): Promise<Record<string, unknown>> {
  const signing = { key: funderKey(target), token: target.material.route.source.token };
  const { authorization, signature } = await signErc3009({
    ...signing,
    chainId: vault.chainId,
    to: vault.address,
    value,
    ...changes,
  });
  return { chainId: vault.chainId, ...authorization, signature };
}

const MOST_PERMITS = 200n;

/** Funds a vault by an EIP-2612 permit; the answer, and the body that was sent. How many permits the owner has signed before is found out by trying. */
export async function submitPermit(
  target: Target,
  { vault, value }: { vault: VaultPlace; value: bigint },
): Promise<{ reply: Reply; body: Record<string, unknown> }> {
  const signing = { key: funderKey(target), token: target.material.route.source.token };
  for (let count = 0n; ; count += 1n) {
    const { authorization, signature } = await signErc2612(
      { ...signing, chainId: vault.chainId, to: vault.address, value },
      count,
    );
    const body = { chainId: vault.chainId, ...authorization, signature };
    const reply = await atVaults(target, { path: VAULTS.erc2612, body });
    if (reply.status !== 409 || count >= MOST_PERMITS) return { reply, body };
  }
}

/** Looks a vault up at the older path. The name of the chain's parameter is not shown: `sourceChainId` is assumed. */
export function lookUpVault(target: Target, { address, chainId }: VaultPlace): Promise<Reply> {
  return atVaults(target, {
    path: `/deposit-gateway/v2/depositAddresses/${address}`,
    query: { sourceChainId: String(chainId) },
  });
}

/** Looks a job of the deposit gateway up. */
export function lookUpJob(target: Target, id: string): Promise<Reply> {
  return atVaults(target, { path: `/deposit-gateway/v1/gasless/jobs/${id}` });
}

/** The address that signs for the funder. */
export function funderAddress(target: Target): string {
  return privateKeyToAccount(funderKey(target)).address;
}
