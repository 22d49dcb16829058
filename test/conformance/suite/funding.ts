import { privateKeyToAccount } from 'viem/accounts';
import { bodyOf, call, type Reply } from './call.ts';
import { holds, read, text } from './expectation.ts';
import { funderKey } from './quoting.ts';
import { given, type Target } from './rule.ts';
import { type Signed, type Signing, signErc2612, signErc3009, signPermit2, signPermit3 } from './signing.ts';

export const SUBMITS = {
  'erc-3009': signErc3009,
  permit2: signPermit2,
  permit3: signPermit3,
} as const;

export type Scheme = keyof typeof SUBMITS;

/** Differences between an authorization and a correct one. */
export type Changes = Partial<Pick<Signing, 'key' | 'from' | 'nonce' | 'until' | 'value'>>;

export const VAULTS = {
  create: '/v1/deposit-gateway/deposit-addresses',
  erc3009: '/v1/deposit-gateway/submit/erc-3009',
  erc2612: '/v1/deposit-gateway/submit/erc-2612',
  status: '/v1/deposit-gateway/status',
  olderErc3009: '/deposit-gateway/v1/gasless/transferWithAuthorization',
} as const;

/** Makes a payload that funds a quote. */
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
  return call(target, { method: 'POST', path, body: payload, ...(key === undefined ? {} : { key }) });
}

/** Names a vault as the endpoints do. */
export type VaultPlace = { address: string; chainId: number };

/** Requests a vault. */
export function requestVault(target: Target, body: unknown = given(target, 'vaultRequest')): Promise<Reply> {
  return atVaults(target, { path: VAULTS.create, body });
}

/** A new vault, the record that named it, and its quoted amounts. */
export async function newVault(
  target: Target,
): Promise<{ place: VaultPlace; record: unknown; amount: bigint }> {
  const reply = await requestVault(target);
  holds(reply.status >= 200 && reply.status < 300, `creating a vault: found ${reply.status} ${reply.text}`);
  const record = read(bodyOf(reply, reply.status), 'data');
  const place = { address: text(record, 'vaultAddress'), chainId: target.material.route.source.chainId };
  return { place, record, amount: BigInt(text(record, 'amount')) };
}

/** Calls a deposit-vault endpoint; they need no key. */
export function atVaults(
  target: Target,
  { path, body, query }: { path: string; body?: unknown; query?: Record<string, string> },
): Promise<Reply> {
  return call(target, {
    path,
    key: null,
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { method: 'POST', body }),
  });
}

/** Makes a body that funds a vault by an ERC-3009 transfer. */
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

/** Funds a vault by an EIP-2612 permit; returns the answer and the sent body. Finds the owner's permit count by trying. */
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

/** Requests a vault at the older path. The name of the chain's parameter is not documented: `sourceChainId` is assumed. */
export function fetchVault(target: Target, { address, chainId }: VaultPlace): Promise<Reply> {
  return atVaults(target, {
    path: `/deposit-gateway/v2/depositAddresses/${address}`,
    query: { sourceChainId: String(chainId) },
  });
}

/** Requests a job of the deposit gateway. */
export function fetchJob(target: Target, id: string): Promise<Reply> {
  return atVaults(target, { path: `/deposit-gateway/v1/gasless/jobs/${id}` });
}

/** The address that signs for the funder. */
export function funderAddress(target: Target): string {
  return privateKeyToAccount(funderKey(target)).address;
}
