import { type BoundedLog, createBoundedLog } from './bounded-log.ts';
import { lookupKey } from './identifiers.ts';
import type { Change } from './life.ts';
import type { TransferPlan } from './plan.ts';
import type { GatewayJobRecord, IntentStatus, StatusRecord, VaultRecord } from './record.ts';
import {
  depositAddressRecord,
  gatewayJobRecord,
  gatewayWord,
  intentRecord,
  jobRecord,
  quoteRecord,
  swapRecord,
  vaultRecord,
} from './render.ts';
import { createWalletIndex, type Page, type PageQuery } from './wallet-index.ts';

export const LOG_CAPACITY = 500_000;

/**
 * A real status change; `from` is null at birth, `at` Unix milliseconds. Subjects are `intent:0x…`, `quote:<uuid>`,
 * `gasless:<uuid>` (the status endpoint's states), `gasless:gateway:<uuid>` (the deposit gateway's states),
 * `vault:<chainId>:<address in lower case>`.
 */
export type Transition = { subject: string; from: string | null; to: string; at: number };

/** A subject (named as in a transition) and a status it had. */
export type Mention = { id: string; status: string };

/** A record with its subject. Entries are replaced, never changed: `former` is the one before. */
export type Entry<R> = { record: R; mention: Mention; former?: Entry<R> | undefined };

/** Subjects that a client can subscribe to, without past transfers. */
export type Subjects = {
  wallets: string[];
  intents: string[];
  quotes: string[];
  gaslessJobs: string[];
  vaults: { address: string; chainId: number }[];
};

/** An intent takes a status, or shows more in the one it has. */
type Moved = { plan: TransferPlan; status: IntentStatus; nowMs: number };

type IntentChange = Change & { thing: 'intent' };

/** A change of one part of a transfer. `deadline` is the end of its vault's funding, in Unix seconds. */
export type Happening = { plan: TransferPlan; deadline: number; change: Change; nowMs: number };

/** The state of the sandbox. Only `apply` changes it. */
export type World = {
  readonly transitions: BoundedLog<Transition>;
  announce(plan: TransferPlan): void;
  apply(happening: Happening): void;
  /** Adds an intent that finished in the past; no transition is logged. Older ones must be added first. */
  remember(plan: TransferPlan, finished: { change: IntentChange; updatedAt: number }): void;
  intent(hash: string): Entry<StatusRecord> | undefined;
  /** Intents that a transaction funds, in the order in which they became known. */
  intentsBySourceTx(txHash: string): Entry<StatusRecord>[];
  intentsByDestinationTx(txHash: string): Entry<StatusRecord>[];
  quote(uuid: string): Entry<StatusRecord> | undefined;
  job(uuid: string): Entry<StatusRecord> | undefined;
  gatewayJob(uuid: string): Entry<GatewayJobRecord> | undefined;
  vault(vault: { chainId: number; address: string }): Entry<VaultRecord> | undefined;
  walletPage(query: PageQuery): Page<Entry<StatusRecord>>;
  subjects(): Subjects;
};

/** Creates an empty world. `moved` is notified of every status of an intent, `remembered` of past ones. */
export function createWorld({
  wallets,
  moved,
  remembered,
}: {
  wallets: readonly string[];
  moved?: (change: Moved) => void;
  remembered?: (change: Moved) => void;
}): World {
  const transitions = createBoundedLog<Transition>(LOG_CAPACITY);
  const intents = new Map<string, Entry<StatusRecord>>();
  const hashesBySourceTx = new Map<string, Set<string>>();
  const hashesByDestinationTx = new Map<string, Set<string>>();
  const quotes = new Map<string, Entry<StatusRecord>>();
  const jobs = new Map<string, Entry<StatusRecord>>();
  const gatewayJobs = new Map<string, Entry<GatewayJobRecord>>();
  const vaults = new Map<string, Entry<VaultRecord>>();
  const depositAddresses = new Map<string, Entry<StatusRecord>>();
  const byWallet = createWalletIndex<Entry<StatusRecord>>();
  const named = {
    intents: new Set<string>(),
    quotes: new Set<string>(),
    gaslessJobs: new Set<string>(),
    vaults: new Map<string, { address: string; chainId: number }>(),
  };

  /** The one setter of states: stores the entry and logs a transition. */
  function put<R>(
    entries: Map<string, Entry<R>>,
    next: { record: R; mention: Mention; key: string; nowMs: number },
  ): Entry<R> {
    const { key, record, mention, nowMs } = next;
    const former = entries.get(key);
    const from = former?.mention.status ?? null;
    const entry = { record, mention, former };
    entries.set(key, entry);
    if (from !== mention.status) {
      transitions.add({ subject: mention.id, from, to: mention.status, at: nowMs });
    }
    return entry;
  }

  /** Indexes an intent by the present fields of its record. */
  function index(
    plan: TransferPlan,
    { entry, status }: { entry: Entry<StatusRecord>; status: IntentStatus },
  ) {
    const key = plan.intentHash;
    addHash(hashesBySourceTx, plan.source.txHash, key);
    if (entry.record.destinationTx !== undefined) {
      addHash(hashesByDestinationTx, plan.destination.txHash, key);
    }
    byWallet.put({ key, entry, wallets: [plan.funder, plan.recipient], status });
  }

  function addHash(hashes: Map<string, Set<string>>, txHash: string, intentHash: string): void {
    const key = lookupKey(txHash);
    hashes.set(key, (hashes.get(key) ?? new Set()).add(intentHash));
  }

  function intentsBy(hashes: Map<string, Set<string>>, txHash: string): Entry<StatusRecord>[] {
    return [...(hashes.get(lookupKey(txHash)) ?? [])].flatMap((hash) => intents.get(hash) ?? []);
  }

  function applyToIntent({ plan, nowMs }: Happening, { status, shown }: IntentChange): void {
    const key = plan.intentHash;
    const record = intentRecord({ plan, status, shown, updatedAt: stamp(intents.get(key), nowMs) });
    const entry = put(intents, { key, nowMs, record, mention: { id: record.id, status } });
    named.intents.add(key);
    index(plan, { entry, status });
    moved?.({ plan, status, nowMs });
    showBeside({ plan, nowMs }, { status, shown });
  }

  /** Adds the records beside the intent of some transfers: the intent that swaps, and the deposit address. */
  function showBeside(
    { plan, nowMs }: Pick<Happening, 'plan' | 'nowMs'>,
    { status, shown }: Pick<IntentChange, 'status' | 'shown'>,
  ): void {
    const wallets = [plan.funder, plan.recipient];
    const { swap, vaultAddress: address } = plan;
    if (swap !== null) {
      const key = swap.intentHash;
      const updatedAt = stamp(intents.get(key), nowMs);
      const record = swapRecord({ plan, swap, status, shown, updatedAt });
      const entry = put(intents, { key, nowMs, record, mention: { id: record.id, status } });
      byWallet.put({ key, entry, wallets, status });
    }
    if (plan.showsDepositAddress && address !== null) {
      const key = `deposit-address:${address}`;
      const updatedAt = stamp(depositAddresses.get(key), nowMs);
      const record = depositAddressRecord({ plan, address, status, shown, updatedAt });
      const entry = put(depositAddresses, { key, nowMs, record, mention: { id: record.id, status } });
      byWallet.put({ key, entry, wallets, status });
    }
  }

  function applyToQuote({ plan, nowMs }: Happening, { status, shown }: Change & { thing: 'quote' }): void {
    const key = plan.quoteUuid;
    if (key === null) throw new Error(`transfer ${plan.intentHash} has no quote`);
    const updatedAt = stamp(quotes.get(key), nowMs);
    const record = quoteRecord({ plan, quoteUuid: key, status, shown, updatedAt });
    put(quotes, { key, nowMs, record, mention: { id: record.id, status } });
    named.quotes.add(key);
  }

  function applyToJob({ plan, nowMs }: Happening, { status }: Change & { thing: 'job' }): void {
    const { job } = plan;
    if (job === null) throw new Error(`transfer ${plan.intentHash} has no gasless job`);
    const key = job.uuid;
    const record = jobRecord({ plan, job, status, updatedAt: stamp(jobs.get(key), nowMs) });
    put(jobs, { key, nowMs, record, mention: { id: record.id, status } });
    put(gatewayJobs, {
      key,
      nowMs,
      record: gatewayJobRecord({ plan, job, status }),
      mention: { id: `gasless:gateway:${key}`, status: gatewayWord(job, status) },
    });
    named.gaslessJobs.add(key);
  }

  function applyToVault({ plan, nowMs, deadline }: Happening, { state }: Change & { thing: 'vault' }): void {
    const { vaultAddress } = plan;
    if (vaultAddress === null) throw new Error(`transfer ${plan.intentHash} has no vault`);
    const { chainId } = plan.source.chain;
    const key = vaultKey({ chainId, address: vaultAddress });
    const record = vaultRecord({ plan, vaultAddress, state, deadline });
    put(vaults, { key, nowMs, record, mention: { id: `vault:${key}`, status: state } });
    named.vaults.set(key, { address: vaultAddress, chainId });
  }

  return {
    transitions,
    announce({ origin, intentHash, quoteUuid, job, vaultAddress, source }) {
      if (origin === 'direct') named.intents.add(intentHash);
      if (origin === 'quote' && quoteUuid !== null) named.quotes.add(quoteUuid);
      if (job !== null) named.gaslessJobs.add(job.uuid);
      if (vaultAddress !== null) {
        const vault = { address: vaultAddress, chainId: source.chain.chainId };
        named.vaults.set(vaultKey(vault), vault);
      }
    },
    apply(happening) {
      const { change } = happening;
      switch (change.thing) {
        case 'intent':
          return applyToIntent(happening, change);
        case 'quote':
          return applyToQuote(happening, change);
        case 'job':
          return applyToJob(happening, change);
        case 'vault':
          return applyToVault(happening, change);
        default:
          return change satisfies never;
      }
    },
    remember(plan, { change: { status, shown }, updatedAt }) {
      const record = intentRecord({ plan, status, shown, updatedAt });
      const entry = { record, mention: { id: record.id, status } };
      intents.set(plan.intentHash, entry);
      index(plan, { entry, status });
      remembered?.({ plan, status, nowMs: updatedAt * 1000 });
    },
    intent: (hash) => intents.get(lookupKey(hash)),
    intentsBySourceTx: (txHash) => intentsBy(hashesBySourceTx, txHash),
    intentsByDestinationTx: (txHash) => intentsBy(hashesByDestinationTx, txHash),
    quote: (uuid) => quotes.get(uuid.toLowerCase()),
    job: (uuid) => jobs.get(uuid.toLowerCase()),
    gatewayJob: (uuid) => gatewayJobs.get(uuid.toLowerCase()),
    vault: (vault) => vaults.get(vaultKey(vault)),
    walletPage: (query) => byWallet.page(query),
    subjects: () => ({
      wallets: [...wallets],
      intents: [...named.intents],
      quotes: [...named.quotes],
      gaslessJobs: [...named.gaslessJobs],
      vaults: [...named.vaults.values()],
    }),
  };
}

/** `updatedAt` of a change now, in Unix seconds: it never goes back. */
function stamp(former: Entry<StatusRecord> | undefined, nowMs: number): number {
  return Math.max(former?.record.updatedAt ?? 0, Math.floor(nowMs / 1000));
}

/** The key of a vault: `<chainId>:<address in lower case>`. */
export function vaultKey({ chainId, address }: { chainId: number; address: string }): string {
  return `${chainId}:${address.toLowerCase()}`;
}
