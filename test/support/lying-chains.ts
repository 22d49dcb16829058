import { z } from 'zod';
import type { StatedPayment } from '../../sandbox/chains/chains.ts';
import { outcomeOf } from '../../sandbox/chains/moves.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { CHAINS } from '../../sandbox/world/chains.ts';
import { type Place, placeKey } from './lying-account.ts';
import { ENDPOINTS } from './lying-faults.ts';
import { SOLANA } from './lying-orders.ts';

/** Most requests that an endpoint of the sandbox answers at once. */
const AT_ONCE = 100;

/** An endpoint of every chain that has no faults, for the test alone. */
const TRUTHFUL = 'truthful';

type Request = { method: string; params: unknown[] };

const ANSWERS = z.array(z.looseObject({ result: z.json() }));

async function requestAll(
  sandbox: Sandbox,
  { chainId, endpoint }: { chainId: number; endpoint: string },
  requests: readonly Request[],
): Promise<unknown[]> {
  const results: unknown[] = [];
  for (let at = 0; at < requests.length; at += AT_ONCE) {
    const batch = requests.slice(at, at + AT_ONCE).map((one, id) => ({ jsonrpc: '2.0', id, ...one }));
    const response = await fetch(sandbox.rpcUrl(chainId, endpoint), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(batch),
    });
    results.push(...ANSWERS.parse(await response.json()).map(({ result }) => result));
  }
  return results;
}

function transactionRequest({ chainId, txHash }: StatedPayment): Request {
  if (chainId !== SOLANA) return { method: 'eth_getTransactionReceipt', params: [txHash] };
  const options = { commitment: 'confirmed', maxSupportedTransactionVersion: 0 };
  return { method: 'getTransaction', params: [txHash, options] };
}

function byChain(payments: readonly StatedPayment[]): [number, StatedPayment[]][] {
  return [...Map.groupBy(payments, ({ chainId }) => chainId)];
}

/** The payments by `placeKey`, true when two endpoints contradict each other about the block or the amounts. */
export async function contradictedOf(
  sandbox: Sandbox,
  payments: readonly StatedPayment[],
): Promise<Map<string, boolean>> {
  const found = new Map<string, boolean>();
  for (const [chainId, own] of byChain(payments)) {
    const requests = own.map(transactionRequest);
    const reported = await Promise.all(
      ENDPOINTS.map((endpoint) => requestAll(sandbox, { chainId, endpoint }, requests)),
    );
    for (const [index, one] of own.entries()) {
      const texts = reported.map((answers) => ofToken(answers[index], one.token));
      found.set(placeKey(one), new Set(texts).size > 1);
    }
  }
  return found;
}

/** True when more moves in the transaction of a payment than the payment. */
export function isBeside(payment: StatedPayment): boolean {
  const chain = CHAINS.find(({ chainId }) => chainId === payment.chainId);
  if (chain === undefined) throw new Error(`no chain ${payment.chainId}`);
  return outcomeOf({ ...payment, block: 0 }, chain).moves.length > 1;
}

/** The present place of each transaction of these payments, by `placeKey`; without those that are in no block. */
export async function placesOf(
  sandbox: Sandbox,
  payments: readonly StatedPayment[],
): Promise<Map<string, Place>> {
  const places = new Map<string, Place>();
  for (const [chainId, own] of byChain(payments)) {
    const at = { chainId, endpoint: TRUTHFUL };
    const reported = await requestAll(sandbox, at, own.map(transactionRequest));
    const moved = own.flatMap((one, index) => {
      const read = STORED_STATE.safeParse(reported[index]);
      return read.success ? [{ key: placeKey(one), ...read.data }] : [];
    });
    const blocks = await requestAll(
      sandbox,
      at,
      moved.map(({ number }) =>
        chainId === SOLANA
          ? { method: 'getBlock', params: [number] }
          : { method: 'eth_getBlockByNumber', params: [`0x${number.toString(16)}`] },
      ),
    );
    for (const [index, { key, number }] of moved.entries()) {
      places.set(key, { number: String(number), hash: HASHED.parse(blocks[index]) });
    }
  }
  return places;
}

const STORED_STATE = z.union([
  z.object({ slot: z.int() }).transform(({ slot }) => ({ number: slot })),
  z.object({ blockNumber: z.string() }).transform(({ blockNumber }) => ({ number: Number(blockNumber) })),
]);

const HASHED = z.union([
  z.object({ blockhash: z.string() }).transform(({ blockhash }) => blockhash),
  z.object({ hash: z.string() }).transform(({ hash }) => hash),
]);

/** Turns an answer into text: of logs only those of this token, and of balances only their changes. */
function ofToken(answer: unknown, token: string): string {
  return JSON.stringify(answer, (_, value: unknown) => {
    const log = LOG.safeParse(value);
    if (log.success && log.data.address.toLowerCase() !== token.toLowerCase()) return null;
    const balances = BALANCES.safeParse(value);
    return balances.success ? { err: balances.data.err, changes: changesOf(balances.data, token) } : value;
  });
}

/** The changes of a token's balances by owner, without owners whose balance is as before. */
function changesOf(
  { preTokenBalances, postTokenBalances }: z.infer<typeof BALANCES>,
  token: string,
): [string, string][] {
  const changes = new Map<string, bigint>();
  for (const [balances, sign] of [[preTokenBalances, -1n] as const, [postTokenBalances, 1n] as const]) {
    for (const { owner, mint, uiTokenAmount } of balances) {
      if (mint !== token) continue;
      changes.set(owner, (changes.get(owner) ?? 0n) + sign * BigInt(uiTokenAmount.amount));
    }
  }
  return [...changes].flatMap(([owner, change]) => (change === 0n ? [] : [[owner, change.toString()]]));
}

const LOG = z.object({ address: z.string(), topics: z.unknown() });

const BALANCE = z.object({
  owner: z.string(),
  mint: z.string(),
  uiTokenAmount: z.object({ amount: z.string() }),
});

const BALANCES = z.object({
  err: z.json(),
  preTokenBalances: z.array(BALANCE),
  postTokenBalances: z.array(BALANCE),
});
