import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Command } from 'commander';
import { z } from 'zod';
import { between, chance, integer, pick, type Random, randomStream } from '../../sandbox/world/random.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';
import { ChildDaemon } from '../support/child-daemon.ts';
import { TestReceiver } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { logEntries } from '../support/log-entries.ts';
import { Program } from '../support/program.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { SANDBOX_KEY, SandboxProcess } from '../support/sandbox-process.ts';
import { slackOf } from '../support/slow-machine.ts';
import { storeEvidence } from './evidence.ts';
import { accountFacts, type FactsAccount, type Ordered, type Shown } from './facts-account.ts';

// A daemon watches quotes and vaults at a sandbox that answers with faults: some are never funded, some deliver less than
// promised, some have a failed step. The daemon is killed once on the way. Then every reported fact is compared with the orders
// to the sandbox. Exits with 0 only if each fact was reported once, and no other.

const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** Quotes and vaults can be funded for 300 s, divided by this; by half of it when a seed is run again. */
const TIME_SCALE = 20;
const WARN_BEFORE_MS = 7_000;
const PREFIX = 'facts';
const QUOTES = 14;
const VAULTS = 5;
const DRAIN_MS = 180_000;
/** Least time from an answer to the event that it causes; more where the event log shows that the machine is slower. */
const COMMITTED_MS = 3_000;
/** Longer than the pause after repeated failures, and than the pause of unreadable chains. */
const REPORTED_WITHIN_MS = 400_000;

/** On a busy machine quotes expire before they can be funded: a seed with less than this share is run again, slower. */
const LEAST_FUNDED = 0.5;
const TRIES = 3;

const USDC = {
  base: { chainId: 8453, token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' },
  optimism: { chainId: 10, token: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85' },
};
const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';

const FAULTS = [
  { type: 'latency', ms: 20, spreadMs: 300, rate: 0.3 },
  { type: 'error', code: 'internal-error', rate: 0.1 },
  { type: 'error', code: 'rate-limit-exceeded', retryAfterSeconds: 1, rate: 0.01 },
  { type: 'bare-error', status: 502, rate: 0.1 },
  { type: 'lost-answer', status: 504, rate: 0.1 },
  { type: 'html', rate: 0.1 },
  { type: 'truncated-body', rate: 0.1 },
  { type: 'slow-body', ms: 300, rate: 0.1 },
  { type: 'wrong-content-type', rate: 0.2 },
  { type: 'stale-reads', rate: 0.15 },
  { type: 'not-indexed', rate: 0.15 },
  { type: 'unknown-fields', rate: 0.2 },
  { type: 'regressions', rate: 0.3 },
];
const FAULTS_OF_A_SEED = 4;

const QUOTE = z.looseObject({
  id: z.string(),
  intentHash: z.string(),
  expiresAt: z.number(),
  destination: z.looseObject({ amountOut: z.string(), minAmountOut: z.string() }),
});
const VAULT = z.object({
  data: z.object({ vaultAddress: z.string(), deadline: z.number(), intentHash: z.string() }),
});

await new Command('facts')
  .description('Compare every fact that a daemon reports with the orders of a sandbox with faults.')
  .option('--seed <number>', 'the first seed: what is ordered, what is wrong, and when', Number, 1)
  .option('--seeds <number>', 'how many seeds, one after another', Number, 1)
  .action(async ({ seed, seeds }: { seed: number; seeds: number }) => {
    for (let index = 0; index < seeds; index += 1) {
      let isHeldUp = true;
      for (let tries = 0; isHeldUp && tries < TRIES; tries += 1) {
        const outcome = await run(seed + index, 2 ** tries);
        report(seed + index, outcome);
        if (outcome.problems.length > 0) process.exitCode = 1;
        isHeldUp = outcome.isHeldUp;
      }
      if (isHeldUp) process.exitCode = 1;
    }
  })
  .parseAsync();

/**
 * Result of a seed. `evidence`: the folder with the records of the daemon, the sandbox and the receiver; null where nothing is
 * wrong. `isHeldUp`: too few quotes could be funded in time.
 */
type Outcome = FactsAccount & { faults: string[]; evidence: string | null; isHeldUp: boolean };

/** Runs a seed. `slower`: factor on all times. */
async function run(seed: number, slower: number): Promise<Outcome> {
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const random = randomStream('facts', seed);
    const flags = { port: 0, 'control-port': 0, 'transfers-per-second': 1, seed };
    const scaled = { ...flags, 'time-scale': TIME_SCALE / slower };
    const args = Object.entries(scaled).map((flag) => `--${flag.join('=')}`);
    const program = await Program.start(MAIN, ['sandbox', ...args]);
    closers.push(() => program.end('SIGKILL'));
    const sandbox = await SandboxProcess.of(program);
    const redis = await RedisProcess.create();
    closers.push(() => redis.close());
    const receiver = new TestReceiver();
    await receiver.start();
    closers.push(() => receiver.close());
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-facts-'));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    const { wallets } = await sandbox.subjects();

    const orders = await order(sandbox, { random, folder });
    const daemon = new ChildDaemon({
      baseUrl: sandbox.url,
      redisUrl: redis.url,
      prefix: PREFIX,
      receivers: { hook: { url: receiver.url } },
      subscriptions: [
        { name: 'wallets', wallets, receivers: ['hook'], warnBefore: '7s' },
        {
          name: 'orders',
          quotes: orders.flatMap(({ file }) => (file === null ? [] : [{ file }])),
          intents: orders.map(({ ordered: { intent } }) => intent.slice('intent:'.length)),
          vaults: orders.flatMap(({ vault }) => (vault === null ? [] : [vault])),
          receivers: ['hook'],
          warnBefore: '7s',
        },
      ],
    });
    closers.push(() => daemon.kill());
    await daemon.start();
    const faults = await disturb(sandbox, random);
    const away: { fromMs: number; toMs: number }[] = [];
    const killed = kill(daemon, { random, away });
    await Promise.all(orders.map((one) => fund(sandbox, one)));
    await killed;
    await sandbox.setPace(0);
    const ordered = orders.map(({ ordered: one }) => one);
    await eventually('all that was ordered has ended', () => hasEnded(sandbox, ordered), DRAIN_MS * slower);
    await control(sandbox, 'DELETE', '/faults');
    const within = async (what: string, holds: () => Promise<boolean>): Promise<unknown> =>
      eventually(what, holds, REPORTED_WITHIN_MS).catch(() => null);
    await within('the last of each was shown', async () => isShownToTheEnd(ordered, await shownBy(sandbox)));
    // A superfluous report would come with the next poll of each wallet, which is stored by the time of the request after it.
    const sinceMs = Date.now();
    await within('each wallet was polled again', async () => {
      const requests = (await sandbox.requests(sinceMs)).map(({ query }) => query.wallet?.toLowerCase());
      return wallets.every((wallet) => requests.filter((one) => one === wallet.toLowerCase()).length >= 2);
    });
    // An answer takes its time to be reported: later answers are not required.
    const shown = await shownBy(sandbox);
    const outages = away.map(({ fromMs, toMs }) => ({ fromMs, untilMs: toMs }));
    const [entries, showings] = [await logOf(redis), await sandbox.showings()];
    const committedMs = Math.max(COMMITTED_MS, slackOf({ entries, showings, outages }));
    const accountNow = (): FactsAccount =>
      accountFacts(ordered, shown, receiver.events, { warnBeforeMs: WARN_BEFORE_MS, away, committedMs });
    // An event that is still missing then is lost, and the account names it.
    await within('everything was reported', async () => isReported(accountNow()));
    const account = accountNow();
    const evidence =
      account.problems.length === 0
        ? null
        : await storeEvidence(seed, {
            ...{ problems: account.problems, faults, away, ordered },
            ...{ events: receiver.events, log: daemon.lines },
            ...{ transitions: await sandbox.transitions(), showings: await sandbox.showings() },
          });
    const wanted = orders.filter(({ beforeMs }) => beforeMs !== null).length;
    const funded = ordered.filter(({ fundedAtMs }) => fundedAtMs !== null).length;
    return { ...account, faults, evidence, isHeldUp: funded < LEAST_FUNDED * wanted };
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/** True when each order was delivered, refunded or has failed, or can no longer be funded. */
async function hasEnded(sandbox: SandboxProcess, ordered: readonly Ordered[]): Promise<boolean> {
  const last = new Map((await sandbox.transitions()).map(({ subject, to }) => [subject, to]));
  return ordered.every(({ intent, fundedAtMs, expiresAtMs }) =>
    fundedAtMs === null
      ? Date.now() > expiresAtMs + 2_000
      : ['filled', 'settled', 'refunded', 'failed'].includes(last.get(intent) ?? ''),
  );
}

/** True when answers showed the final state of the steps of each quote: no further poll is needed. */
function isShownToTheEnd(ordered: readonly Ordered[], shown: readonly Shown[]): boolean {
  const bySubject = Map.groupBy(shown, ({ id }) => id);
  return ordered.every(({ subject, isRefunded, stepFails }) => {
    if (!subject.startsWith('quote:') || !(isRefunded || stepFails)) return true;
    const seen = bySubject.get(subject) ?? [];
    return seen.some(({ steps }) => (isRefunded ? steps.refunded : steps.failed) > 0);
  });
}

function isReported({ problems }: FactsAccount): boolean {
  return !problems.some((problem) => problem.endsWith('was not reported'));
}

type Order = {
  ordered: Ordered;
  file: string | null;
  vault: { address: string; chainId: number } | null;
  /** Time of the funding in ms before the expiry; null for never. */
  beforeMs: number | null;
  how: object;
};

/** Has the sandbox make quotes and vaults, and draws their fates. */
async function order(
  sandbox: SandboxProcess,
  { random, folder }: { random: Random; folder: string },
): Promise<Order[]> {
  const orders: Order[] = [];
  for (let index = 0; index < QUOTES; index += 1) {
    const amount = String(1_000_000 * (1 + integer(random, 900)));
    const source = { ...USDC.base, funder: WALLET, amount };
    const body = { type: 'exact-in', dappId: 'facts', source };
    const destination = { ...USDC.optimism, recipient: WALLET };
    const quote = QUOTE.parse(await post(`${sandbox.url}/v1/quotes`, { ...body, destination }));
    const file = join(folder, `quote-${index}.json`);
    await writeFile(file, JSON.stringify(quote));
    const [promised, minimum] = [quote.destination.amountOut, quote.destination.minAmountOut].map(BigInt);
    if (promised === undefined || minimum === undefined) throw new Error('a quote without amounts');
    const delivers = pick(random, [promised, promised, minimum, minimum - 1n, minimum / 2n]);
    orders.push(
      drawn(random, {
        ...{ subject: quote.id, intent: quote.intentHash, expiresAt: quote.expiresAt, minimum, delivers },
        ...{ file, vault: null, fundable: { quoteId: quote.id } },
      }),
    );
  }
  for (let index = 0; index < VAULTS; index += 1) {
    const [from, to] = [USDC.base, USDC.optimism];
    const { data } = VAULT.parse(
      await post(`${sandbox.url}/v1/deposit-gateway/deposit-addresses`, {
        ...{ sourceChainId: from.chainId, destinationChainId: to.chainId },
        ...{ sourceToken: from.token, destinationToken: to.token, amount: '5000000', recipient: WALLET },
      }),
    );
    const vault = { address: data.vaultAddress, chainId: from.chainId };
    const subject = `vault:${vault.chainId}:${vault.address.toLowerCase()}`;
    const fundable = { vaultAddress: vault.address, chainId: vault.chainId };
    const { intentHash: intent, deadline: expiresAt } = data;
    const of = { subject, intent, expiresAt, minimum: null, delivers: 4_000_000n };
    orders.push(drawn(random, { ...of, file: null, vault, fundable }));
  }
  return orders;
}

function drawn(
  random: Random,
  of: Pick<Order, 'file' | 'vault'> & {
    subject: string;
    intent: string;
    expiresAt: number;
    minimum: bigint | null;
    delivers: bigint;
    fundable: object;
  },
): Order {
  const isFunded = chance(random, 0.7);
  const fate = pick(random, ['settled', 'settled', 'late-details', 'refunded', 'failed']);
  const isDelivered = fate === 'settled' || fate === 'late-details';
  const stepFails = !isDelivered && chance(random, 0.7);
  // Some before the warning, some after it.
  const beforeMs = chance(random, 0.6) ? 60_000 : between(random, 2_000, WARN_BEFORE_MS - 2_000);
  return {
    file: of.file,
    vault: of.vault,
    beforeMs: isFunded ? beforeMs : null,
    how: { ...of.fundable, fate, stepFails, ...(isDelivered ? { delivered: String(of.delivers) } : {}) },
    ordered: {
      subject: of.subject,
      intent: `intent:${of.intent}`,
      expiresAtMs: of.expiresAt * 1_000,
      fundedAtMs: null,
      minimum: of.minimum,
      delivers: isFunded && isDelivered ? of.delivers : null,
      stepFails: isFunded && stepFails,
      isRefunded: isFunded && fate === 'refunded',
    },
  };
}

/** Funds an order at its time. An order that has expired by then, on a busy machine, does not count as funded. */
async function fund(sandbox: SandboxProcess, { ordered, beforeMs, how }: Order): Promise<void> {
  if (beforeMs === null) return;
  await wait(Math.max(0, ordered.expiresAtMs - beforeMs - Date.now()));
  const answer = await control(sandbox, 'POST', '/fund', how);
  if (answer.status === 200) ordered.fundedAtMs = Date.now();
  else if (answer.status === 410) {
    Object.assign(ordered, { delivers: null, stepFails: false, isRefunded: false });
  } else throw new Error(`POST /fund answered ${answer.status}: ${await answer.text()}`);
}

async function disturb(sandbox: SandboxProcess, random: Random): Promise<string[]> {
  const left = [...FAULTS];
  const names: string[] = [];
  for (let index = 0; index < FAULTS_OF_A_SEED; index += 1) {
    const [fault] = left.splice(integer(random, left.length), 1);
    if (fault === undefined) break;
    const { status } = await control(sandbox, 'POST', '/faults', fault);
    if (status !== 201) throw new Error(`POST /faults answered ${status} to ${fault.type}`);
    names.push(fault.type);
  }
  return names;
}

async function kill(
  daemon: ChildDaemon,
  { random, away }: { random: Random; away: { fromMs: number; toMs: number }[] },
): Promise<void> {
  await wait(between(random, 1_000, 14_000));
  const fromMs = Date.now();
  await daemon.kill();
  await daemon.start();
  away.push({ fromMs, toMs: Date.now() });
}

async function logOf({ url }: RedisProcess): Promise<LogEntry[]> {
  const client = connect({ kind: 'server', url });
  try {
    return await logEntries(client, new Keys(PREFIX));
  } finally {
    await disconnect(client);
  }
}

async function shownBy(sandbox: SandboxProcess): Promise<Shown[]> {
  return (await sandbox.showings()).flatMap(({ at, doneAt, isPage, records }) =>
    doneAt === null ? [] : records.map((record) => ({ ...record, isPage, atMs: at, doneAtMs: doneAt })),
  );
}

async function post(url: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json', 'x-api-key': SANDBOX_KEY };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`POST ${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

async function control(
  sandbox: SandboxProcess,
  method: 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<Response> {
  return fetch(`${sandbox.controlUrl}${path}`, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
}

function report(seed: number, { due, reported, excused, problems, ...outcome }: Outcome): void {
  const types = [...new Set([...Object.keys(due), ...Object.keys(reported)])].toSorted();
  const counts = types.map((type) => `${type} ${reported[type] ?? 0}/${due[type] ?? 0}`).join(', ');
  const reason = problems.length === 0 ? 'each reported once' : problems.join('; ');
  process.stdout.write(
    `seed ${seed} (${outcome.faults.join(', ')}): reported/due ${counts}; ${excused} excused; ${reason}\n`,
  );
  if (outcome.evidence !== null) {
    process.stdout.write(`what was seen of seed ${seed}: ${outcome.evidence}\n`);
  }
  if (outcome.isHeldUp)
    process.stdout.write(`seed ${seed} proves little: most could not be funded in time\n`);
}
