import {
  decodeAbiParameters,
  decodeEventLog,
  decodeFunctionData,
  erc20Abi,
  getContractAddress,
  type Hex,
} from 'viem';
import type { RawLog } from '../chains/engine.ts';
import { VAULT_CREATION_HASH } from '../contracts/code.ts';
import { PORTAL_ABI, PORTAL_ADDRESS } from '../contracts/portal.ts';
import { ROUTE_ABI } from '../quotes/intents.ts';
import { CHAINS, type Chain, TOKENS, type Token } from './chains.ts';
import type { Order } from './generator.ts';
import { lookupKey } from './identifiers.ts';

/** An intent that a client published and funded at the Portal. Its tokens are held at `vault`; `deadline` is Unix seconds. */
export type PublishedIntent = { hash: Hex; vault: Hex; deadline: number; order: Order };

/**
 * Finds the intents that a transaction published and funded whole. Solvers serve those that pay one listed token to one
 * recipient on another EVM chain for one listed token; others stay as they are.
 */
export function publishedIntents(chainId: number, logs: readonly RawLog[]): PublishedIntent[] {
  const events = logs.filter(({ address }) => lookupKey(address) === PORTAL_ADDRESS).flatMap(eventOf);
  const funded = new Set(
    events.flatMap((event) =>
      event.eventName === 'IntentFunded' && event.args.complete ? [event.args.intentHash] : [],
    ),
  );
  return events.flatMap((event) => {
    if (event.eventName !== 'IntentPublished' || !funded.has(event.args.intentHash)) return [];
    const { intentHash, destination, route, creator, rewardDeadline, rewardTokens } = event.args;
    const [reward, ...otherRewards] = rewardTokens;
    const source = reward === undefined ? null : placeOf(chainId, reward.token);
    const payment = paymentOf(Number(destination), route);
    if (source === null || payment === null || otherRewards.length > 0) return [];
    const vault = getContractAddress({
      opcode: 'CREATE2',
      from: PORTAL_ADDRESS,
      salt: intentHash,
      bytecodeHash: VAULT_CREATION_HASH,
    });
    // All listed tokens have as many decimals: no solver pays more than the reward.
    if (BigInt(payment.amount) > (reward?.amount ?? 0n)) return [];
    const order: Order = {
      origin: 'direct',
      funder: creator,
      refundRecipient: null,
      recipient: payment.recipient,
      source: { ...source, amount: String(reward?.amount) },
      destination: { ...payment.place, amount: payment.amount },
    };
    return [{ hash: intentHash, vault, deadline: Number(rewardDeadline), order }];
  });
}

function eventOf({ topics: [signature, ...topics], data }: RawLog) {
  if (signature === undefined) return [];
  try {
    return [decodeEventLog({ abi: PORTAL_ABI, topics: [signature, ...topics], data })];
  } catch {
    return [];
  }
}

/** The one payment of a route; null for any other content. */
function paymentOf(chainId: number, route: Hex) {
  try {
    const [{ calls }] = decodeAbiParameters(ROUTE_ABI, route);
    const [call, ...others] = calls;
    const place = call === undefined ? null : placeOf(chainId, call.target);
    if (call === undefined || place === null || others.length > 0) return null;
    const { functionName, args } = decodeFunctionData({ abi: erc20Abi, data: call.data });
    if (functionName !== 'transfer') return null;
    const [recipient, amount] = args;
    return { recipient, place, amount: String(amount) };
  } catch {
    return null;
  }
}

/** A listed token of an EVM chain. */
function placeOf(chainId: number, token: string): { chain: Chain; token: string } | null {
  const chain = CHAINS.find((one) => one.chainId === chainId && one.kind === 'evm');
  const isToken = (one: Token): boolean =>
    one.chainId === chainId && lookupKey(one.address) === lookupKey(token);
  const listed = TOKENS.find(isToken);
  return chain === undefined || listed === undefined ? null : { chain, token: listed.address };
}
