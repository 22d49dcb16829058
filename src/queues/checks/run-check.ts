import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type ChainReader, readBurn } from '../../chains/chain-readers.ts';
import { fundedAt } from '../../domain/changes/next-snapshot.ts';
import { type Burn, localIntent } from '../../domain/proof/burn.ts';
import type { Funding } from '../../domain/proof/log-owner.ts';
import type { TxState } from '../../domain/proof/proof.ts';
import { isProofReported, withProofFlag, withProofWithdrawn } from '../../domain/proof/proof-flags.ts';
import { endpointStates, type PostponeReason, planRecheck } from '../../domain/proof/recheck-times.ts';
import {
  recipientsOf,
  type Stated,
  type Statement,
  statementPrint,
  statementsOf,
  type TokenRules,
} from '../../domain/proof/statement.ts';
import { judge, type Verdict } from '../../domain/proof/verdict.ts';
import type { Signals } from '../../signals.ts';
import type { LastState } from '../../store/check-record.ts';
import { CHAIN_LEFT, type CheckStore, type ClaimedCheck, type Ending } from '../../store/checks.ts';
import { type RedisClient, redisTimeMs } from '../../store/commands.ts';
import type { Registry } from '../../store/registry.ts';
import {
  type CommitResult,
  type SubjectEntry,
  type SubjectStore,
  UNSEEN_SUBJECT,
} from '../../store/subjects.ts';
import { commitFlags, commitUnasked } from '../polls/commit-flagged.ts';
import type { Learning } from '../polls/learning.ts';
import type { FailureLog } from './failure-log.ts';

/** Longest life of a check, within the retention. After it the check ends as unchecked. */
const LONGEST_LIFE_MS = 14 * 86_400_000;

const MOST_COMMITS = 20;
const COMMIT_AGAIN_MS = 50;

const LONGEST_REASON = 200;

/**
 * States of a check. All but `waiting` are ends. Each end is one atomic step, with its event where there is one. A crash
 * between any two lines below leaves a claim that expires, and the check is requested again.
 *
 *   state      | by what                                       | event             | then
 *   -----------|-----------------------------------------------|-------------------|---------------------------------
 *   waiting    | a statement; one that restates it             | -                 | polled when the missing part may exist: see
 *              |                                               |                   | planRecheck() for the time, include/check.lua for
 *              |                                               |                   | its early ends; without its logs where it
 *              |                                               |                   | wants those of others
 *   verified   | judge(); the log is claimed in that step      | intent.verified   | stored; waiting again if it loses its log
 *   disputed   | judge()                                       | intent.disputed   | stored; waiting again if by a released log
 *   unproven   | judge()                                       | intent.unproven   | stored for the retention
 *   unchecked  | judge(); 14 days or the retention without end | -                 | stored; waiting again if by a released log
 *   unchecked  | its chain is no longer in the config          | -                 | stored; waiting again if the chain is back
 *
 * Ends are stored for the retention. A payment that its transfer no longer states is not reported: its check waits, and is
 * judged again if the payment is stated again. A check that is requested again because of a log has its report withdrawn until
 * it ends; the same outcome is not reported twice. A different statement in a later event restarts a check from any state. The
 * holder of an expired claim, or of a restated check, writes nothing: `gone`. A log claimed meanwhile makes it judge again.
 */
export async function runCheck(check: ClaimedCheck, deps: CheckContext, signal: AbortSignal): Promise<void> {
  const { statement } = check;
  const { checks, subjects } = deps.stores;
  if (check.since !== null) await withdrawWord(check, deps);
  const reader = deps.readers.get(statement.chainId);
  if (reader === undefined) {
    await endUnasked(check, CHAIN_LEFT, deps);
    return;
  }
  if (await endUseless(check, deps)) return;
  const read = await Promise.all([
    reader.read(statement.txHash, { token: statement.token, signal }),
    burnOf(check, deps, signal),
  ]).catch((error: unknown) => {
    if (signal.aborted) return null;
    throw error;
  });
  if (read === null || signal.aborted) {
    await checks.postpone(check, { inMs: 0, because: check.because, responses: null });
    return;
  }
  const [txStates, burn] = read;
  deps.failures.note(statement.chainId, txStates);
  for (let tries = 0; tries < MOST_COMMITS; tries += 1) {
    const entry = await subjects.peek(statement.subject);
    const nowMs = await redisTimeMs(deps.redis);
    const facts = { promised: entry.promised, record: entry.snapshot?.record ?? null };
    if ((localIntent(statement, facts) === null) !== (burn === null)) {
      // It became a local intent while the chains were read, or ceased to be one.
      await postpone(check, { because: 'burn', txStates, nowMs }, deps);
      return;
    }
    const verdict = await verdictOf(check, { entry, txStates, burn, nowMs }, deps);
    if (verdict.outcome === 'waiting') {
      await postpone(check, { because: verdict.because, txStates, nowMs }, deps);
      return;
    }
    if (verdict.outcome !== 'unchecked' && !isStated(check, entry)) {
      await postpone(check, { because: 'not-stated', txStates, nowMs }, deps);
      return;
    }
    const ending = endingOf(verdict, txStates);
    const outcome = await end(check, { ending, entry, nowMs }, deps);
    if (outcome === 'gone') return;
    if (outcome === 'ended') {
      report(check, { ending, txStates, isReported: isReported(check, ending, entry) }, deps);
      return;
    }
    await sleep(COMMIT_AGAIN_MS);
  }
  throw new Error(`the check ${check.id} could not be committed: others were faster ${MOST_COMMITS} times`);
}

/** Withdraws the reported outcome while a check is requested again, however long its endpoints do not answer. */
async function withdrawWord({ id, statement }: ClaimedCheck, deps: CheckContext): Promise<void> {
  const { subject } = statement;
  const { checks, subjects } = deps.stores;
  for (let tries = 0; tries < MOST_COMMITS; tries += 1) {
    const { snapshot } = await subjects.peek(subject);
    if (snapshot === null) return;
    const flags = withProofWithdrawn(snapshot.flags, statement);
    if (flags.every((flag) => snapshot.flags.includes(flag))) return;
    // Read after the snapshot: a process that ends it meanwhile writes the snapshot again.
    const now = (await checks.of(subject)).find((check) => check.id === id);
    if (now?.state !== 'waiting') return;
    if ((await commitFlags(deps, { subject, snapshot }, { flags })) !== 'superseded') return;
    await sleep(COMMIT_AGAIN_MS);
  }
  throw new Error(`the word of ${id} could not be withdrawn: others were faster ${MOST_COMMITS} times`);
}

/** The burn of a local intent's delivery; null for any other payment. */
async function burnOf(
  { statement, statedAt }: ClaimedCheck,
  { stores: { subjects }, readers, redis }: CheckContext,
  signal: AbortSignal,
): Promise<Burn | null> {
  if (statement.payment !== 'destination') return null;
  const entry = await subjects.peek(statement.subject);
  const ageMs = (await redisTimeMs(redis)) - statedAt;
  const record = entry.snapshot?.record ?? null;
  return readBurn(statement, { promised: entry.promised, record }, { readers, ageMs, signal });
}

async function endUseless(check: ClaimedCheck, deps: CheckContext): Promise<boolean> {
  const nowMs = await redisTimeMs(deps.redis);
  const verdict = await verdictOf(check, { entry: UNSEEN_SUBJECT, txStates: [], burn: null, nowMs }, deps);
  if (verdict.outcome !== 'unchecked') return false;
  await endUnasked(check, verdict.because, deps);
  return true;
}

async function endUnasked(check: ClaimedCheck, because: string, deps: CheckContext): Promise<void> {
  const nothing = { proof: null, responses: [], endpoints: [], logs: [], from: [], isHeld: false };
  const ending: Ending = { state: 'unchecked', because, ...nothing };
  if ((await deps.stores.checks.end(check, ending)) === 'ended') {
    report(check, { ending, txStates: [], isReported: false }, deps);
  }
}

async function verdictOf(
  check: ClaimedCheck,
  {
    entry,
    txStates,
    burn,
    nowMs,
  }: { entry: SubjectEntry; txStates: readonly TxState[]; burn: Burn | null; nowMs: number },
  { stores, tokens }: CheckContext,
): Promise<Verdict> {
  const { statement } = check;
  const [owners, funding] = await Promise.all([
    stores.checks.ownersOfLogs(statement),
    fundingOf(statement, entry, stores.checks),
  ]);
  return judge(await withRecipients(statement, entry, stores.registry), txStates, {
    ...tokens(statement.chainId),
    ownerOf: (index) => owners.get(index) ?? null,
    funding,
    burn,
    statedAtMs: check.statedAt,
    nowMs,
    rememberedMs: stores.checks.retentionMs,
  });
}

async function postpone(
  check: ClaimedCheck,
  {
    because,
    txStates,
    nowMs,
  }: {
    because: PostponeReason;
    txStates: readonly TxState[];
    nowMs: number;
  },
  deps: CheckContext,
): Promise<void> {
  const { checks } = deps.stores;
  const ageMs = Math.max(0, nowMs - check.statedAt);
  if (isOver(check, { nowMs }, deps)) {
    const ending: Ending = {
      state: 'unchecked',
      because,
      proof: null,
      responses: lastStates(txStates),
      endpoints: endpointStates(txStates),
      logs: [],
      from: [],
      isHeld: false,
    };
    if ((await checks.end(check, ending)) === 'ended')
      report(check, { ending, txStates, isReported: false }, deps);
    return;
  }
  const isSeen = txStates.some(({ outcome }) => outcome === 'found');
  const seenAtMs = isSeen ? nowMs : check.seenAt;
  const sinceSeenMs = seenAtMs === null ? null : Math.max(0, nowMs - seenAtMs);
  const { inMs, endpoints } = planRecheck({ because, txStates, ageMs, sinceSeenMs });
  await checks.postpone(check, { inMs, because, responses: lastStates(txStates), endpoints, seenAtMs });
}

/** True when a check has waited for the longest time. */
export function isOver(check: ClaimedCheck, { nowMs }: { nowMs: number }, { stores }: CheckContext): boolean {
  return nowMs - (check.since ?? check.statedAt) > Math.min(LONGEST_LIFE_MS, stores.checks.retentionMs);
}

/** True when the known record of the transfer still states the checked payment, and when no record is known. */
function isStated({ statement }: ClaimedCheck, { snapshot }: SubjectEntry): boolean {
  if (snapshot === null || snapshot.salvaged === true) return true;
  const print = statementPrint(statement);
  return statementsOf({ subject: statement.subject, record: snapshot.record }).some(
    (stated) => stated.payment === statement.payment && statementPrint(stated) === print,
  );
}

function endingOf(verdict: Exclude<Verdict, { outcome: 'waiting' }>, txStates: readonly TxState[]): Ending {
  const read = { responses: lastStates(txStates), endpoints: endpointStates(txStates) };
  if (verdict.outcome === 'unchecked') {
    const { because, isHeld } = verdict;
    return { state: 'unchecked', because, proof: null, ...read, logs: [], from: [], isHeld };
  }
  const { outcome: state, proof } = verdict;
  const logs = state === 'verified' ? (proof.moved ?? []).map(({ index }) => index) : [];
  const from = state === 'verified' ? verdict.from : [];
  const isHeld = state === 'disputed' && verdict.isHeld;
  return { state, because: proof.reason ?? '', proof, ...read, logs, from, isHeld };
}

/**
 * True when an outcome is reported. A subject whose snapshot the retention removed is not reported: its check stores the
 * outcome. Nor is an outcome that is reported already, where a check was requested again because of a log.
 */
function isReported(
  { statement }: ClaimedCheck,
  { state, proof }: Ending,
  { snapshot }: SubjectEntry,
): boolean {
  if (proof === null || snapshot === null || state === 'unchecked') return false;
  return !isProofReported(snapshot.flags, statement, state);
}

/** Ends a check, with its event in one step. `again`: another process wrote the subject, or claimed a log, meanwhile. */
async function end(
  check: ClaimedCheck,
  { ending, entry, nowMs }: { ending: Ending; entry: SubjectEntry; nowMs: number },
  deps: CheckContext,
): Promise<'ended' | 'gone' | 'again'> {
  const { checks } = deps.stores;
  const { state, proof } = ending;
  const { snapshot } = entry;
  if (proof === null || snapshot === null || state === 'unchecked') {
    const outcome = await checks.end(check, ending);
    return outcome === 'used' ? 'again' : outcome;
  }
  const { subject } = check.statement;
  const flags = withProofFlag(snapshot.flags, check.statement, state);
  if (!isReported(check, ending, entry)) {
    const silent = { flags, check: checks.ending(check, ending) };
    return ended(await commitFlags(deps, { subject, snapshot }, silent));
  }
  const { status } = snapshot;
  const { outcome } = await commitUnasked(
    deps,
    { ...entry, snapshot, subject },
    {
      transition: {
        type: `intent.${state}`,
        status,
        previousStatus: status,
        changes: [],
        skipped: false,
        regression: false,
      },
      raw: {},
      flags,
      claimKeys: null,
      nowMs,
      check: checks.ending(check, ending),
      proof,
    },
  );
  return ended(outcome);
}

/** The process that committed an outcome reports it: here it counts as `gone`. */
function ended(outcome: CommitResult['outcome']): 'ended' | 'gone' | 'again' {
  if (outcome === 'gone' || outcome === 'already') return 'gone';
  return outcome === 'superseded' || outcome === 'used' ? 'again' : 'ended';
}

function report(
  check: ClaimedCheck,
  { ending, txStates, isReported }: { ending: Ending; txStates: readonly TxState[]; isReported: boolean },
  { signals, log }: CheckContext,
): void {
  const { subject, payment, chainId, txHash } = check.statement;
  const { state, because } = ending;
  const found = txStates.find((txState) => txState.outcome === 'found');
  const isDelivery = payment === 'destination' && state === 'verified';
  const isTimed = isDelivery && found !== undefined && check.updatedAt !== null;
  const lagSeconds = isTimed ? Math.max(0, (check.updatedAt ?? 0) - found.block.timestamp) : null;
  signals.emit('check.ended', { chainId, state, route: check.corridor, lagSeconds });
  const level = state === 'verified' ? 'info' : 'warn';
  const line = { subject, payment, chainId, txHash, state, polls: check.polls + 1 };
  log[level]({ ...line, ...(because === '' ? {} : { because }), isReported }, 'check.ended');
}

function lastStates(txStates: readonly TxState[]): LastState[] {
  return txStates.map((txState) => {
    const { endpoint, outcome } = txState;
    return outcome === 'failed'
      ? { endpoint, outcome, reason: txState.reason.slice(0, LONGEST_REASON) }
      : { endpoint, outcome };
  });
}

/** A statement with its rightful recipients: those that the user names for its subscriptions, and of the imported quote. */
async function withRecipients(
  stated: Stated,
  { claims, promised }: SubjectEntry,
  registry: Registry,
): Promise<Statement> {
  const subscriptions = await registry.subscriptions(claims.map(({ key }) => key));
  const recipients = [...subscriptions.values()].flatMap((subscription) => subscription.recipients);
  return { ...stated, recipients: recipientsOf(stated, { recipients, promised }) };
}

/** Chains of the config: their `readers`, and the rules about the tokens of one chain. */
export type CheckedChains = {
  readers: ReadonlyMap<string, ChainReader>;
  tokens: (chainId: string) => TokenRules;
};

/** Dependencies of checks. */
export type CheckContext = CheckedChains & {
  /** The process that claims them. */
  process: string;
  redis: RedisClient;
  stores: { checks: CheckStore; subjects: SubjectStore; registry: Registry };
  learning: Learning;
  signals: Signals;
  log: Logger;
  failures: FailureLog;
};

/** Funding of a payment's transfer: by the check of its source payment, else by the upstream's report. */
export async function fundingOf(
  { subject, payment, chainId }: Stated,
  { snapshot }: SubjectEntry,
  checks: CheckStore,
): Promise<Funding> {
  if (payment === 'source') return null;
  const source = (await checks.of(subject)).find(({ statement }) => statement.payment === 'source');
  // A payment that is no longer stated is not waited for.
  if (source?.state === 'waiting' && source.because !== 'not-stated') return { state: 'open' };
  const proof = source?.state === 'verified' ? source.proof : null;
  if (proof?.block !== undefined) {
    const atMs = proof.block.timestamp * 1_000;
    // One host alone is not enough to dispute another payment.
    if (proof.singleSource === true) return { state: 'reported', atMs };
    const payer = proof.chainId === chainId ? (proof.moved?.[0]?.from ?? null) : null;
    return { state: 'proved', atMs, payer };
  }
  const fundedSeconds = snapshot === null ? null : fundedAt(subject, snapshot);
  return fundedSeconds === null ? null : { state: 'reported', atMs: fundedSeconds * 1_000 };
}
