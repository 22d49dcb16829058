import fc from 'fast-check';
import { afterAll, expect, inject, test } from 'vitest';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { commitRecord } from '../../src/queues/polls/commit-record.ts';
import { EndedSubjects } from '../../src/store/ended-subjects.ts';
import { Keys } from '../../src/store/keys.ts';
import { type ExpectedEntry, writtenEntry } from '../../src/store/log-entry.ts';
import type { SubjectEntry } from '../../src/store/subjects.ts';
import { testPrefix } from '../support/daemon.ts';
import { logEntries } from '../support/log-entries.ts';
import { OpenTransfersStage, record, sent, T0, T0_MS } from '../support/open-transfers-stage.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const SUBJECTS = [intentId(hashOf(1)), intentId(hashOf(2))] as const;
const STATUSES = ['pending', 'filled', 'settled', 'expired', 'REFUNDABLE', 'refunded'] as const;
const PROMISE = JSON.stringify({ quote: 'q', destination: { chainId: '10', token: '0x01', minimum: '5' } });

const SUBJECT = fc.nat(SUBJECTS.length - 1);

/** A page of a process that shows a transfer in a status, some seconds after T0, or without a time. */
const SHOWN = fc.record({
  kind: fc.constant('shown' as const),
  process: fc.nat(1),
  subject: SUBJECT,
  status: fc.constantFrom(...STATUSES),
  seconds: fc.option(fc.nat(5)),
  wallet: fc.constantFrom('s', 't'),
  amount: fc.constantFrom('7', '8'),
});

/** An act that changes a transfer between two pages. */
const MEANWHILE = fc.record({
  kind: fc.constantFrom(
    'claimed',
    'unclaimed',
    'overdue',
    'promised',
    'doubted',
    'removed',
    'compacted',
    'ended',
  ),
  process: fc.nat(1),
  subject: SUBJECT,
});

type Act = typeof SHOWN extends fc.Arbitrary<infer A> ? A : never;
type Change = typeof MEANWHILE extends fc.Arbitrary<infer C> ? C : never;

const PENDING: Act = {
  kind: 'shown',
  process: 0,
  subject: 0,
  status: 'pending',
  seconds: 0,
  wallet: 's',
  amount: '7',
};

const PENDING_1: Act = { ...PENDING, process: 1 };

/** Two pages that show a change, the second one to a process, and what comes between them. */
function between(all: readonly (Change['kind'] | Act)[], process = 0): [(Act | Change)[]] {
  const changes = all.map((one) => (typeof one === 'string' ? { kind: one, process: 1, subject: 0 } : one));
  return [[PENDING, ...changes, { ...PENDING, process, status: 'filled', seconds: 1 }]];
}

const stages: OpenTransfersStage[] = [];
afterAll(() => {
  for (const stage of stages) stage.close();
});

/** Two processes on one Redis. With `holds`, each decides by what it holds, and takes what it does not hold for new. */
class World {
  readonly #processes: readonly OpenTransfersStage[];
  readonly #holds: boolean;
  readonly outcomes: string[] = [];
  /** Entries that were announced, each with what its commit wrote. */
  readonly announced: { expected: readonly string[]; written: readonly string[] }[] = [];

  constructor({ holds }: { holds: boolean }) {
    this.#holds = holds;
    const keys = new Keys(testPrefix());
    this.#processes = [0, 1].map(() => new OpenTransfersStage(inject('redisUrl'), keys));
    stages.push(...this.#processes);
  }

  #process(number: number): OpenTransfersStage {
    const found = this.#processes[number];
    if (found === undefined) throw new Error(`no process ${number}`);
    return found;
  }

  async show(
    { process, subject: number, status, seconds, wallet, amount }: Act,
    nowMs: number,
  ): Promise<string> {
    const { redis, keys, subjects, deps } = this.#process(process);
    const subject = SUBJECTS[number] ?? SUBJECTS[0];
    const asOf = (await redis.get(keys.commit)) ?? '0';
    const claim = { key: `${wallet}|wallet:0x01`, atMs: 1, historyBefore: null, served: false };
    await redis.hset(keys.wanted, claim.key, '1');
    const raw = record(subject, status, T0 + (seconds ?? 0), sent(amount));
    const shown = seconds === null ? { ...raw, updatedAt: null, raw: { ...raw.raw, updatedAt: null } } : raw;
    const how = { asOf, nowMs, price: 1, exact: false, claims: [claim] };
    const recalled = this.#holds ? subjects.recall(subject, { status: null, mayBeNew: true }) : null;
    const first =
      recalled === null ? null : await this.#noting(process, () => commitRecord(deps, shown, recalled, how));
    if (first !== null) this.outcomes.push(first.outcome);
    if (first !== null && first.outcome !== 'outdated') return resultOf(first.outcome, first.before);
    const [read] = await subjects.readEach([subject]);
    if (read === undefined) throw new Error('nothing was read');
    const { outcome, before } = await this.#noting(process, () => commitRecord(deps, shown, read, how));
    return resultOf(outcome, before);
  }

  /** Commits, and notes what was announced beside the entry that it wrote. */
  async #noting<T>(process: number, commit: () => Promise<T>): Promise<T> {
    const { redis, keys, own } = this.#process(process);
    const expected: ExpectedEntry[] = [];
    own.take('0-0');
    own.onExpected((entries) => expected.push(...entries));
    const before = await redis.xlen(keys.events);
    const result = await commit();
    const [last] = await redis.xrevrange(keys.events, '+', '-', 'COUNT', 1);
    const isWritten = (await redis.xlen(keys.events)) > before;
    for (const entry of isWritten ? expected : [])
      this.announced.push({
        expected: inOrder(writtenEntry('', entry).fields),
        written: inOrder(last?.[1] ?? []),
      });
    return result;
  }

  async change({ kind, process, subject: number }: Change, nowMs: number): Promise<void> {
    const stage = this.#process(process);
    const { redis, keys, subjects } = stage;
    const subject = SUBJECTS[number] ?? SUBJECTS[0];
    const key = `u|${subject}`;
    switch (kind) {
      case 'claimed':
        await redis.hset(keys.wanted, key, '1');
        await subjects.claim(subject, [{ key, atMs: 1, historyBefore: null, served: false }]);
        return;
      case 'unclaimed':
        await redis.hdel(keys.claims(subject), 's|wallet:0x01');
        return;
      case 'overdue':
        await stage.reportOverdue(subject, nowMs);
        return;
      case 'promised':
        await redis.hset(keys.promised, subject, PROMISE);
        return;
      case 'doubted':
        if ((await redis.exists(keys.subject(subject))) === 1)
          await redis.hset(keys.subject(subject), 'unconfirmed', `${nowMs}|key`);
        return;
      case 'removed':
        await redis.del(keys.subject(subject), keys.claims(subject));
        return;
      case 'compacted':
        await stage.retire(subject);
        await new EndedSubjects(redis, keys).compact({
          confirmedMs: Date.now() + 30 * 86_400_000,
          retentionMs: 86_400_000,
          loggedFromMs: Number.POSITIVE_INFINITY,
        });
        return;
      case 'ended':
        await stage.retire(subject);
        return;
      default:
        throw new Error(kind);
    }
  }

  /** The log without places, and the stored state of all subjects without the names of calls and times of Redis. */
  async state(): Promise<unknown> {
    const { redis, keys } = this.#process(0);
    const log = await logEntries(redis, keys);
    const subjects = await Promise.all(
      SUBJECTS.map(async (subject) => {
        const {
          call: _,
          eventEntry: __,
          shownAtMs: ___,
          ...fields
        } = await redis.hgetall(keys.subject(subject));
        const item = await redis.hexists(`${keys.plan('status')}:items`, subject);
        return { fields, claims: await redis.hgetall(keys.claims(subject)), item };
      }),
    );
    const entries = log.map((entry) => ({ ...entry, id: '', entry: '', fields: [] }));
    return { entries, subjects, counts: await redis.hgetall(keys.counts) };
  }
}

/** The fields of an entry, with its claim keys in order: where theirs is another, the relay opens it otherwise. */
function inOrder(fields: readonly string[]): string[] {
  const claimKeys: string[] = JSON.parse(fields.at(-1) ?? '[]');
  return [...fields.slice(0, -1), ...claimKeys.toSorted()];
}

function resultOf(outcome: string, { snapshot, claims, promised }: SubjectEntry): string {
  const { commit, status = null } = snapshot ?? {};
  const sorted = claims.toSorted((one, other) => one.key.localeCompare(other.key));
  return JSON.stringify([outcome, commit, status, sorted, promised]);
}

test('changes that are decided by what a process holds are as those that are read first, whatever comes between', async () => {
  let [unread, announced] = [0, 0];
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof({ weight: 3, arbitrary: SHOWN }, MEANWHILE), { maxLength: 12 }),
      async (acts) => {
        const [held, read] = [new World({ holds: true }), new World({ holds: false })];
        for (const [index, act] of acts.entries()) {
          const nowMs = T0_MS + 1_000 * index;
          if (act.kind === 'shown') expect(await held.show(act, nowMs)).toBe(await read.show(act, nowMs));
          else for (const world of [held, read]) await world.change(act, nowMs);
        }
        expect(await held.state()).toEqual(await read.state());
        for (const { expected, written } of [...held.announced, ...read.announced])
          expect(written).toEqual(expected);
        announced += held.announced.length;
        unread += held.outcomes.filter((outcome) => outcome !== 'outdated').length;
      },
    ),
    {
      numRuns: 200,
      examples: [
        between(['claimed']),
        between(['unclaimed']),
        between(['unclaimed', 'claimed']),
        between(['promised']),
        between(['removed']),
        // Its state that came back names no call.
        between(['compacted', PENDING_1, 'unclaimed'], 1),
        // Its claim keys are announced in another order than its commit has them in.
        [
          [
            { kind: 'claimed', process: 0, subject: 0 },
            { ...PENDING, wallet: 't' },
            { ...PENDING_1, status: 'REFUNDABLE', seconds: null },
            { ...PENDING_1, status: 'refunded', seconds: null },
          ],
        ],
      ],
    },
  );
  // Otherwise it would show nothing: the read of an outdated state makes both worlds equal.
  expect(unread).toBeGreaterThan(200);
  expect(announced).toBeGreaterThan(100);
});
