import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';

/** One end of a transfer. `done`: the transaction happened; else it was only agreed. `members`: source members. */
export type Leg = LegOrigin & {
  chainId: string | null;
  token: string | null;
  amount: string | null;
  txHash: string | null;
};

type LegOrigin = { done: boolean; members: string[] };

/** Both ends of a transfer and the refund, as far as known. */
export type Transfer = { source: Leg | null; destination: Leg | null; refund: Leg | null };

/**
 * Reads the ends of a transfer from a record of any kind: from its transactions, else from its first and last step,
 * else from a vault's or gateway job's own members. An unreadable end is null.
 */
export function readTransfer(record: JsonObject): Transfer {
  if (record.type === 'route') return readPricedRoute(record);
  const steps = Array.isArray(record.steps) ? record.steps.filter(isJsonObject) : [];
  const [first, last] = [steps[0], steps.at(-1)];
  const refunded = steps.map((step) => readStepTransaction(step, 'refunded')).find((leg) => leg !== null);
  return {
    source:
      readLeg(record.sourceTx, { done: true, members: ['sourceTx'] }) ??
      mergeLegs(readLeg(first?.from, STEP_END), readStepTransaction(first, 'created')) ??
      readOwnMembers(record),
    destination:
      readLeg(record.destinationTx, { done: true, members: ['destinationTx'] }) ??
      mergeLegs(readLeg(last?.to, STEP_END), readStepTransaction(last, 'fulfilled')),
    refund: refunded ?? null,
  };
}

/** Both ends of a priced route: nothing is sent yet. */
function readPricedRoute({ source, destination, amount, output }: JsonObject): Transfer {
  const leg = (end: JsonValue | undefined, members: string[], units: JsonValue | undefined): Leg | null =>
    readLeg(isJsonObject(end) ? { ...end, amount: units ?? null } : undefined, { done: false, members });
  return {
    source: leg(source, ['source', 'amount'], amount),
    destination: leg(destination, ['destination', 'output'], output),
    refund: null,
  };
}

const STEP_END = { done: false, members: ['steps'] };

/** A text or number as text; null for anything else, and for an empty text. */
export function readText(value: JsonValue | undefined): string | null {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : null;
}

/** One end of a transfer from a member of a record; null without chain, amount and transaction. */
export function readLeg(value: JsonValue | undefined, origin: LegOrigin): Leg | null {
  if (!isJsonObject(value)) return null;
  const leg = {
    chainId: readText(value.chainId),
    token: readText(value.token),
    amount: readText(value.amount),
    txHash: readText(value.txHash),
  };
  return leg.chainId === null && leg.amount === null && leg.txHash === null ? null : { ...leg, ...origin };
}

function readStepTransaction(step: JsonObject | undefined, name: string): Leg | null {
  const transaction = isJsonObject(step?.transactions) ? step.transactions[name] : undefined;
  return readLeg(transaction, { done: true, members: ['steps'] });
}

/** Vaults and gateway jobs have the members of their one transaction at the top level. */
function readOwnMembers({ amount, sourceChainId, transferTxHash }: JsonObject): Leg | null {
  const leg = { amount: amount ?? null, chainId: sourceChainId ?? null, txHash: transferTxHash ?? null };
  return readLeg(leg, { done: false, members: ['amount', 'sourceChainId', 'transferTxHash'] });
}

/** Completes the agreed values with the transaction that fulfilled them. */
function mergeLegs(agreed: Leg | null, transaction: Leg | null): Leg | null {
  if (agreed === null || transaction === null) return agreed ?? transaction;
  return { ...agreed, txHash: transaction.txHash, done: true };
}

/** Name for an unknown route, and for the statistics of all routes. */
export const ANY_ROUTE = '*';

const CHAIN = /^[A-Za-z0-9_-]{1,40}$/;

/** Route of a record for its timing: `8453:10`; `8453:*` when only the source chain is known; `*` without either. */
export function routeName(record: JsonObject): string {
  const { source, destination } = readTransfer(record);
  const from = source?.chainId ?? '';
  const to = destination?.chainId ?? '';
  if (!CHAIN.test(from)) return ANY_ROUTE;
  return `${from}:${CHAIN.test(to) ? to : '*'}`;
}
