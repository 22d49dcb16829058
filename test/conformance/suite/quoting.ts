import { type Hex, isHex, recoverTypedDataAddress } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { signedData } from '../../support/signed-quote.ts';
import { isMembers } from './breakage.ts';
import { bodyOf, call, type Reply } from './call.ts';
import { holds, list, read, text } from './expectation.ts';
import type { Route } from './material.ts';
import { given, type Target } from './rule.ts';

export const QUOTES = /^\/v1\/quotes/;
export const STATUS = /^\/v1\/intents\/status/;

type Body = Record<string, unknown>;

/** A request for a quote of type `exact-in`. */
export function quoteRequest(target: Target, route: Route = target.material.route): Body {
  return {
    type: 'exact-in',
    dappId: 'conformance',
    source: { ...route.source, amount: route.amount },
    destination: { ...route.destination },
  };
}

/** A copy of a body with another value at a place such as `source.funder`; undefined removes it. */
export function changed(body: Body, place: string, value: unknown): Body {
  const copy = structuredClone(body);
  const keys = place.split('.');
  const last = keys.pop() ?? '';
  let members = copy;
  for (const key of keys) {
    const inner = members[key];
    if (!isMembers(inner)) throw new Error(`the body has no ${place}`);
    members = inner;
  }
  if (value === undefined) delete members[last];
  else members[last] = value;
  return copy;
}

/** Requests a quote with any body. */
export function requestQuote(
  target: Target,
  body: unknown,
  key: string | null = target.apiKey,
): Promise<Reply> {
  return call(target, { method: 'POST', path: '/v1/quotes', body, key });
}

/** Requests a quote; fails when there is none. */
export async function newQuote(target: Target, route?: Route): Promise<unknown> {
  return bodyOf(await requestQuote(target, quoteRequest(target, route)));
}

/** Requests a quote that the account of the funder's key can fund. */
export async function newFundableQuote(target: Target, route?: Route): Promise<unknown> {
  const { address } = privateKeyToAccount(funderKey(target));
  return bodyOf(await requestQuote(target, changed(quoteRequest(target, route), 'source.funder', address)));
}

/** The key of the account whose tokens may be moved. */
export function funderKey(target: Target): Hex {
  return given(target, 'funder').key;
}

/** Requests the status endpoint. */
export function requestStatus(target: Target, query: Record<string, string>): Promise<Reply> {
  return call(target, { path: '/v1/intents/status', query });
}

/** The body of the status endpoint's answer; fails unless it is 200. */
export async function statusOf(target: Target, query: Record<string, string>): Promise<unknown> {
  return bodyOf(await requestStatus(target, query));
}

/** An id without its prefix. */
export function bare(id: string): string {
  return id.slice(id.indexOf(':') + 1);
}

/** The entries of a discovery answer, whose shape the interface does not show: a list, alone or as a member. */
export function entriesOf(body: unknown): unknown[] {
  if (Array.isArray(body)) return body;
  return isMembers(body) ? (Object.values(body).find((value) => Array.isArray(value)) ?? []) : [];
}

/** Address that signs the quotes of a chain, in lower case. */
export async function quoteSigner(target: Target, chainId: number): Promise<string> {
  const chains = entriesOf(bodyOf(await call(target, { path: '/v1/chains' })));
  const chain = chains.find((entry) => read(entry, 'chainId') === chainId);
  holds(chain !== undefined, `GET /v1/chains: expected chain ${chainId}`);
  return text(chain, 'quoteSigner').toLowerCase();
}

/** All hashes that a quote names, as its signature covers them. */
export function hashesOf(quote: unknown): Hex[] {
  const inner = list(quote, 'steps').flatMap((step) =>
    list(step, 'intents').map((intent) => text(intent, 'intentHash')),
  );
  const hashes = [text(quote, 'intentHash'), ...inner].map((hash) => hash.toLowerCase());
  return [...new Set(hashes)].sort().map(hex);
}

/** Address that signed a quote, in lower case; `chainId` is that of the domain. Fails when no address can have. */
export async function signerOf(quote: unknown, chainId: number): Promise<string> {
  const expiresAt = read(quote, 'expiresAt');
  holds(typeof expiresAt === 'number', 'expiresAt: expected Unix seconds');
  const data = signedData({
    id: text(quote, 'id'),
    intentHashes: hashesOf(quote),
    expiresAt: BigInt(expiresAt),
    chainId,
  });
  const signature = hex(text(quote, 'signature'));
  const signer = await recoverTypedDataAddress({ ...data, signature }).catch(() => null);
  holds(signer !== null, `signature: found ${signature}, expected one that a signer can be recovered from`);
  return signer.toLowerCase();
}

function hex(found: string): Hex {
  holds(isHex(found), `found ${found}, expected hex`);
  return found;
}
