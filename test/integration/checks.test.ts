import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { proofOf } from '../../src/domain/proof/proof-flags.ts';
import { PaymentChecks } from '../../src/queues/checks/checks.ts';
import { runCheck } from '../../src/queues/checks/run-check.ts';
import { CheckStore } from '../../src/store/checks.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import {
  absent,
  CHAIN,
  ChecksStage,
  delivery,
  failed,
  found,
  OTHER_TOKEN,
  PAYEE,
  SOLVER,
  TOKEN,
  txOf,
} from '../support/checks-stage.ts';
import { eventually } from '../support/eventually.ts';
import { logEntries } from '../support/log-entries.ts';
import { hashOf } from '../support/scripted-upstream.ts';

/** The time for which a stalled process holds the checks that it works on. */
const LEASE_MS = 10_000;

let redis: RedisClient;
let stage: ChecksStage;

beforeEach(async () => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  stage = new ChecksStage(redis);
  await stage.begin();
});

afterEach(async () => {
  await stage.close();
  redis.disconnect();
});

async function filled(number: number, more: Parameters<typeof delivery>[0] = {}) {
  return stage.report(hashOf(number), 'filled', {
    destinationTx: delivery({ txHash: txOf(number), ...more }),
  });
}

describe('a payment that is stated on a chain with endpoints', () => {
  test('is reported as verified once, with the next number of its transfer and the checked facts', async () => {
    stage.start();
    const intent = await filled(1);
    await stage.until(intent, 'verified');
    const [event, ...more] = await stage.proofs();
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      type: 'intent.verified',
      data: {
        sequence: 2,
        status: 'filled',
        previousStatus: 'filled',
        changes: [],
        proof: {
          payment: 'destination',
          chainId: CHAIN,
          txHash: txOf(1),
          token: TOKEN,
          stated: '1000',
          moved: [{ to: PAYEE, from: SOLVER, amount: '1000' }],
          endpoints: ['other', 'own'],
        },
      },
    });
    expect(await stage.store.counts()).toEqual([{ chain: CHAIN, state: 'verified', count: 1 }]);
    const entry = await stage.subjects.peek(intent);
    expect(entry?.snapshot?.flags).toEqual([expect.stringMatching(/^proof:destination:verified:/)]);
    // The next event has the following sequence.
    await stage.report(hashOf(1), 'settled', { destinationTx: delivery() });
    const last = (await stage.events()).at(-1);
    expect(last).toMatchObject({ type: 'intent.settled', data: { sequence: 3 } });
    const after = await stage.subjects.peek(intent);
    expect(after?.snapshot?.flags).toEqual(entry?.snapshot?.flags);
  });

  test('is requested again until it is final, and no event comes before', async () => {
    let isFinal = false;
    stage.script = () => [found('own', { isFinal }), found('other', { isFinal })];
    stage.start();
    const intent = await filled(1);
    const waiting = await eventually('it was requested', async () => {
      const [check] = await stage.store.of(intent);
      return check !== undefined && check.polls > 0 ? check : null;
    });
    expect(waiting).toMatchObject({ state: 'waiting', because: 'not-final' });
    expect(await stage.proofs()).toEqual([]);
    isFinal = true;
    await stage.until(intent, 'verified');
    expect(await stage.proofs()).toHaveLength(1);
  });

  test('waits, without an event, while its endpoints fail or do not have it', async () => {
    let txStates = [failed('own'), failed('other')];
    stage.script = () => txStates;
    const { checks } = stage.start();
    const intent = await filled(1);
    /** Lets time pass until it waits for this reason. */
    const because = async (word: string): Promise<void> => {
      await eventually(word, async () => {
        if ((await stage.store.of(intent))[0]?.because === word) return true;
        await stage.pass(1_000);
        checks.wake();
        return false;
      });
    };
    await because('unreachable');
    expect((await stage.store.of(intent))[0]?.responses).toEqual([
      { endpoint: 'own', outcome: 'failed', reason: 'timed out' },
      { endpoint: 'other', outcome: 'failed', reason: 'timed out' },
    ]);
    txStates = [absent('own'), absent('other')];
    await because('not-found');
    expect(await stage.proofs()).toEqual([]);
    txStates = [found('own'), found('other')];
    await stage.pass(60_000);
    checks.wake();
    await stage.until(intent, 'verified');
    expect(await stage.proofs()).toHaveLength(1);
  });

  test('is disputed where less was moved, and that stays the worst that was reported of its transfer', async () => {
    stage.script = () => [found('own', { amounts: ['999'] }), found('other', { amounts: ['999'] })];
    stage.start();
    const intent = await filled(1);
    await stage.until(intent, 'disputed');
    expect(await stage.proofs()).toMatchObject([
      { type: 'intent.disputed', data: { proof: { reason: 'short' } } },
    ]);
  });

  test('on another chain, or of a token that is not known, makes no event', async () => {
    stage.start();
    const other = await filled(1, { chainId: 10 });
    const unlisted = await filled(2, { token: '0x00000000000000000000000000000000000000aa' });
    const check = await stage.until(unlisted, 'unchecked');
    expect(check.because).toBe('token-unlisted');
    expect(await stage.store.of(other)).toEqual([]);
    expect(await stage.proofs()).toEqual([]);
    // No endpoint was polled for a result that no answer could change.
    expect(stage.requests).toEqual([]);
  });

  test('that is restated while it waits is checked as it is stated now', async () => {
    stage.script = (tx) =>
      tx === txOf(2) ? [found('own'), found('other')] : [absent('own'), absent('other')];
    stage.start();
    const intent = await filled(1);
    await eventually('it was requested', () => stage.requests.includes(txOf(1)));
    await stage.report(hashOf(1), 'filled', { destinationTx: delivery({ txHash: txOf(2) }) });
    const check = await stage.until(intent, 'verified');
    expect(check.statement.txHash).toBe(txOf(2));
    expect(await stage.proofs()).toHaveLength(1);
    expect(await stage.store.counts()).toEqual([{ chain: CHAIN, state: 'verified', count: 1 }]);
  });

  test.each<[string, JsonObject]>([
    ['transaction', { txHash: txOf(2) }],
    ['amount', { amount: '900' }],
    ['token', { token: '0x00000000000000000000000000000000000000aa' }],
  ])('whose %s is restated loses its reported proof at once', async (_, other) => {
    const verifier = stage.start();
    const intent = await filled(1);
    await stage.until(intent, 'verified');
    await verifier.close();
    await stage.report(hashOf(1), 'filled', { destinationTx: delivery(other) });
    const entry = await stage.subjects.peek(intent);
    const snapshot = entry?.snapshot;
    if (snapshot == null) throw new Error('expected a snapshot');
    expect(proofOf({ subject: intent, ...snapshot })).toBeNull();
    expect(snapshot.flags).toEqual([]);
  });

  test('that its transfer states otherwise meanwhile is not reported as verified', async () => {
    const gate = Promise.withResolvers<void>();
    stage.script = async (tx) => {
      if (tx === txOf(1)) await gate.promise;
      return [found('own'), found('other')];
    };
    const feed = stage.feed();
    feed.start();
    const intent = await filled(1);
    await eventually('it was fed', async () => (await stage.store.counts()).length > 0);
    await feed.close();
    const [check] = (await stage.store.claim('claim', new Map([[CHAIN, 10]]))).claimed;
    if (check === undefined) throw new Error('nothing was claimed');
    const running = runCheck(check, stage.deps(), AbortSignal.timeout(600_000));
    await stage.report(hashOf(1), 'filled', { destinationTx: delivery({ txHash: txOf(2) }) });
    gate.resolve();
    await running;
    expect(await stage.proofs()).toEqual([]);
    expect((await stage.store.of(intent))[0]).toMatchObject({ state: 'waiting', because: 'not-stated' });
  });

  test('is not reported as missing or wrong once its transfer states it no more, and is when it does again', async () => {
    let isFinal = false;
    const txStates = () => ['own', 'other'].map((name) => found(name, { isFinal, succeeded: false }));
    stage.script = txStates;
    stage.start();
    const intent = await filled(1);
    await eventually('it waits', async () => (await stage.store.of(intent))[0]?.because === 'not-final');
    // An omitted member is not a statement: a null at a newer time withdraws it.
    await eventually('it is withdrawn', async () => {
      await stage.report(hashOf(1), 'settled', { destinationTx: null });
      const entry = await stage.subjects.peek(intent);
      return entry?.snapshot?.record.destinationTx === null;
    });
    isFinal = true;
    await stage.makeDue();
    const judged = await eventually('it was judged', async () => {
      const [check] = await stage.store.of(intent);
      return check?.because === 'not-final' ? null : check;
    });
    expect(judged).toMatchObject({ state: 'waiting', because: 'not-stated' });
    expect(await stage.proofs()).toEqual([]);
    await stage.report(hashOf(1), 'settled', { destinationTx: delivery() });
    await stage.makeDue();
    await stage.until(intent, 'disputed');
    expect(await stage.proofs()).toHaveLength(1);
  });

  test('at the same time as another of its transfer is reported at once, and both are counted once', async () => {
    const both = Promise.withResolvers<void>();
    stage.script = async () => {
      if (stage.requests.length >= 2) both.resolve();
      await both.promise;
      return [found('own'), found('other')];
    };
    const sinceMs = performance.now();
    const { signals } = stage.start();
    const reported: (string | undefined)[] = [];
    let ended = 0;
    signals.on('event.committed', ({ event }) => void reported.push(event.data.proof?.payment));
    signals.on('check.ended', () => {
      ended += 1;
    });
    const intent = await stage.report(hashOf(1), 'filled', {
      destinationTx: delivery(),
      sourceTx: delivery({ txHash: txOf(2) }),
    });
    const states = async () => (await stage.store.of(intent)).map(({ state }) => state);
    await eventually('both have ended', async () =>
      isDeepStrictEqual(await states(), ['verified', 'verified']),
    );
    // Redis has an outcome before the process that stored it has its reply.
    await eventually('both were counted', () => ended >= 2);
    if (performance.now() - sinceMs < LEASE_MS) expect(stage.requests).toHaveLength(2);
    expect(reported.sort()).toEqual(['destination', 'source']);
    expect(ended).toBe(2);
    expect((await stage.proofs()).map(({ data }) => data.sequence)).toEqual([2, 3]);
  });

  test('retains its outcome without an event where its transfer has expired by its retention', async () => {
    const gate = Promise.withResolvers<void>();
    stage.script = async () => {
      await gate.promise;
      return [found('own'), found('other')];
    };
    stage.start();
    const intent = await filled(1);
    await eventually('it was requested', () => stage.requests.length > 0);
    await redis.del(stage.keys.subject(intent), stage.keys.claims(intent));
    gate.resolve();
    const check = await stage.until(intent, 'verified');
    expect(check.proof?.txHash).toBe(txOf(1));
    expect(await stage.proofs()).toEqual([]);
  });
});

describe('one payment that two transfers claim', () => {
  test('proves the first, and the other is reported that it is that of another', async () => {
    stage.start();
    const first = await filled(1);
    await stage.until(first, 'verified');
    const second = await stage.report(hashOf(2), 'filled', {
      destinationTx: delivery({ txHash: txOf(1), amount: '999' }),
    });
    await stage.until(second, 'disputed');
    const [, event] = await stage.proofs();
    expect(event).toMatchObject({ type: 'intent.disputed', data: { proof: { reason: 'other-intent' } } });
  });

  test('proves the second once the first is restated with another', async () => {
    stage.start();
    const first = await filled(1);
    await stage.until(first, 'verified');
    await stage.report(hashOf(1), 'filled', { destinationTx: delivery({ txHash: txOf(3) }) });
    await eventually('the other payment is verified', async () => {
      const [check] = await stage.store.of(first);
      return check?.state === 'verified' && check.statement.txHash === txOf(3);
    });
    const second = await stage.report(hashOf(2), 'filled', { destinationTx: delivery({ txHash: txOf(1) }) });
    await stage.until(second, 'verified');
    expect((await stage.proofs()).map(({ type }) => type)).toEqual(Array(3).fill('intent.verified'));
  });

  test('belongs to neither while only the amount of the first is restated and checked anew, and to the first again then', async () => {
    stage.start();
    const first = await filled(1, { amount: '999' });
    await stage.until(first, 'verified');
    stage.script = () => [found('own', { isFinal: false }), found('other', { isFinal: false })];
    await stage.report(hashOf(1), 'filled', { destinationTx: delivery({ txHash: txOf(1) }) });
    await stage.until(first, 'waiting');
    const second = await stage.report(hashOf(2), 'filled', {
      destinationTx: delivery({ txHash: txOf(1), amount: '999' }),
    });
    await eventually(
      'the first was requested anew',
      async () => (await stage.store.of(first))[0]?.because === 'not-final',
    );
    // In either order: the second waits for the first.
    stage.script = () => [found('own'), found('other')];
    await stage.makeDue();
    await stage.until(first, 'verified');
    await stage.makeDue();
    await stage.until(second, 'disputed');
    const types = (await stage.proofs()).map(({ type }) => type);
    expect(types).toEqual(['intent.verified', 'intent.verified', 'intent.disputed']);
  });

  test('is given back with the dispute of the second once the first is restated', async () => {
    stage.start();
    const first = await filled(1);
    await stage.until(first, 'verified');
    const second = await stage.report(hashOf(2), 'filled', {
      destinationTx: delivery({ txHash: txOf(1), amount: '999' }),
    });
    await stage.until(second, 'disputed');
    stage.script = (tx) => (tx === txOf(1) ? [found('own'), found('other')] : []);
    await stage.report(hashOf(1), 'filled', { destinationTx: delivery({ txHash: txOf(3) }) });
    await stage.until(second, 'verified');
    const entry = await stage.subjects.peek(second);
    expect(entry?.snapshot?.flags).toEqual([expect.stringMatching(/^proof:destination:verified:/)]);
  });

  test.each<[string, JsonObject | null, string[]]>([
    ['is withdrawn', null, []],
    // The events about the restated payment were gone, so that they are emitted again.
    ['is stated on a chain that is not checked', delivery({ chainId: 10 }), ['intent.verified']],
  ])('is given back once that of the first %s, until that states it again', async (_, otherwise, again) => {
    stage.start();
    const first = await filled(1);
    await stage.until(first, 'verified');
    const second = await stage.report(hashOf(2), 'filled', {
      destinationTx: delivery({ txHash: txOf(1), amount: '999' }),
    });
    await stage.until(second, 'disputed');
    await eventually('the upstream states it at a newer time', async () => {
      await stage.report(hashOf(1), 'settled', { destinationTx: otherwise });
      const entry = await stage.subjects.peek(first);
      return isDeepStrictEqual(entry?.snapshot?.record.destinationTx, otherwise);
    });
    await stage.until(second, 'verified');
    const withdrawn = await eventually('the first was requested', async () => {
      const [check] = await stage.store.of(first);
      return check?.because === 'not-stated' ? check : null;
    });
    expect(withdrawn.state).toBe('waiting');
    // It states the exact amount that moved.
    await eventually('it is stated again', async () => {
      await stage.report(hashOf(1), 'settled', { destinationTx: delivery() });
      return (await stage.store.of(first))[0]?.state === 'verified';
    });
    await stage.until(second, 'disputed');
    const reported = (await stage.proofs()).map(({ type, data }) => [type, data.subject.id]);
    expect(reported).toEqual([
      ['intent.verified', first],
      ['intent.disputed', second],
      ['intent.verified', second],
      ...again.map((type) => [type, first]),
      ['intent.disputed', second],
    ]);
    const entry = await stage.subjects.peek(first);
    expect(entry?.snapshot?.flags).toEqual([expect.stringMatching(/^proof:destination:verified:/)]);
  });

  test('goes to the transfer that states the exact amount, in any order of the checks', async () => {
    stage.start();
    const first = await filled(1, { amount: '500' });
    await stage.until(first, 'verified');
    const second = await stage.report(hashOf(2), 'filled', { destinationTx: delivery({ txHash: txOf(1) }) });
    await stage.until(second, 'verified');
    await stage.until(first, 'disputed');
    const reported = (await stage.proofs()).map(({ type, data }) => [type, data.subject.id]);
    expect(reported).toEqual([
      ['intent.verified', first],
      ['intent.verified', second],
      ['intent.disputed', first],
    ]);
  });

  test('counts against all losers once it goes to another transfer', async () => {
    stage.start();
    const first = await filled(1, { amount: '400' });
    await stage.until(first, 'verified');
    // Both would fit into it.
    const second = await stage.report(hashOf(2), 'filled', {
      destinationTx: delivery({ txHash: txOf(1), amount: '500' }),
    });
    expect((await stage.until(second, 'unchecked')).because).toBe('ambiguous');
    // This one states the exact amount that moved.
    const third = await stage.report(hashOf(3), 'filled', { destinationTx: delivery({ txHash: txOf(1) }) });
    await stage.until(third, 'verified');
    await stage.until(first, 'disputed');
    await stage.until(second, 'disputed');
    expect((await stage.store.of(third))[0]?.state).toBe('verified');
    expect(await stage.proofs()).toHaveLength(4);
  });

  test('removes the proof of the loser at once, for any answer of its endpoints', async () => {
    stage.start();
    const first = await filled(1, { amount: '500' });
    await stage.until(first, 'verified');
    const word = async (): Promise<string | null> => {
      const entry = await stage.subjects.peek(first);
      return entry?.snapshot == null ? null : proofOf({ subject: first, ...entry.snapshot });
    };
    let times = 0;
    stage.script = () => {
      times += 1;
      return times === 1 ? [found('own'), found('other')] : [failed('own'), failed('other')];
    };
    const second = await stage.report(hashOf(2), 'filled', { destinationTx: delivery({ txHash: txOf(1) }) });
    await stage.until(second, 'verified');
    await eventually('the proof has gone', async () => (await word()) === null);
    expect((await stage.store.of(first))[0]?.state).toBe('waiting');
    expect(await stage.proofs()).toHaveLength(2);
    // The second is restated, and the log is the first's again: the same event is not emitted twice.
    await stage.report(hashOf(2), 'filled', { destinationTx: delivery({ txHash: txOf(3) }) });
    await eventually('the log is free', async () => (await stage.store.of(second))[0]?.state === 'waiting');
    stage.script = (tx) => (tx === txOf(1) ? [found('own'), found('other')] : [absent('own')]);
    await stage.makeDue();
    await stage.until(first, 'verified');
    expect(await word()).toBe('verified');
    expect(await stage.proofs()).toHaveLength(2);
  });

  test('are both reported also where each is restated with the proof of the other', async () => {
    stage.script = () =>
      ['own', 'other'].map((name) =>
        found(name, { amounts: ['1000', '1000'], tokens: [TOKEN, OTHER_TOKEN] }),
      );
    const verifier = stage.start();
    const paid = (number: number, token: string) =>
      stage.report(hashOf(number), 'filled', { destinationTx: delivery({ token }) });
    const [one, two] = [await paid(1, TOKEN), await paid(2, OTHER_TOKEN)];
    await stage.until(one, 'verified');
    await stage.until(two, 'verified');
    await verifier.close();
    await paid(1, OTHER_TOKEN);
    await paid(2, TOKEN);
    stage.start();
    await eventually('both are reported anew', async () => {
      await stage.makeDue();
      const checks = (await Promise.all([one, two].map((id) => stage.store.of(id)))).flat();
      const reported = checks.map(({ state, statement }) => [state, statement.token]);
      return isDeepStrictEqual(reported, [
        ['verified', OTHER_TOKEN],
        ['verified', TOKEN],
      ]);
    });
    expect((await stage.proofs()).map(({ type }) => type)).toEqual(Array(4).fill('intent.verified'));
  });

  test('that delivered one does not refund another', async () => {
    stage.start();
    const first = await filled(1);
    await stage.until(first, 'verified');
    const second = await stage.report(hashOf(2), 'refunded', {
      sourceTx: delivery({ txHash: txOf(2) }),
      steps: [{ transactions: { refunded: { chainId: Number(CHAIN), txHash: txOf(1) } } }],
    });
    const refund = await eventually('the refund was judged', async () => {
      const check = (await stage.store.of(second)).find(({ statement }) => statement.payment === 'refund');
      return check === undefined || check.state === 'waiting' ? null : check;
    });
    expect(refund.state).not.toBe('verified');
  });

  test('proves one of them also where both are judged at the same time', async () => {
    const both = Promise.withResolvers<void>();
    stage.script = async () => {
      if (stage.requests.length >= 2) both.resolve();
      await both.promise;
      return [found('own'), found('other')];
    };
    const [one, other] = await Promise.all(
      [1, 2].map((number) =>
        stage.report(hashOf(number), 'filled', { destinationTx: delivery({ txHash: txOf(9) }) }),
      ),
    );
    stage.start();
    stage.start(connect({ kind: 'server', url: inject('redisUrl') }));
    await eventually('both have ended', async () => {
      const states = await Promise.all(
        [one, other].map(async (id) => (await stage.store.of(id ?? ('' as never)))[0]?.state),
      );
      return states.every((state) => state !== undefined && state !== 'waiting');
    });
    // The chain does not show the owner: the other is not reported as wrong.
    expect((await stage.proofs()).map(({ type }) => type)).toEqual(['intent.verified']);
    expect((await stage.store.counts()).map(({ state }) => state).sort()).toEqual(['unchecked', 'verified']);
  });
});

describe('a process that is gone', () => {
  /** A connection that is cut off at its `at`th command: Redis has executed it, and the answer does not come back. */
  function dying(at: number): { client: RedisClient; isDead: () => boolean } {
    let count = 0;
    let isDead = false;
    const client = new Proxy(redis, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        // A script is defined in this process: Redis gets nothing.
        if (typeof member !== 'function' || name === 'defineCommand') return member;
        return (...args: unknown[]): unknown => {
          count += 1;
          if (count < at) return Reflect.apply(member, target, args);
          const cut = () => Promise.reject(new Error('the process is gone'));
          if (isDead) return cut();
          isDead = true;
          return Promise.resolve(Reflect.apply(member, target, args)).then(cut);
        };
      },
    });
    return { client, isDead: () => isDead };
  }

  test('at any step does not lose a check: another process ends it, with one event', async () => {
    let steps = 0;
    for (let isDone = false; !isDone; steps += 1) {
      const intent = await filled(steps + 1);
      const hasEnded = async (): Promise<boolean> => (await stage.store.of(intent))[0]?.state === 'verified';
      const { client, isDead } = dying(steps + 1);
      const lost = stage.start(client);
      await eventually('it is done or dead', async () => isDead() || hasEnded());
      await lost.close();
      isDone = !isDead();
      await redis.del(stage.keys.checksLease);
      const heir = stage.start();
      await eventually('the other process ends it', async () => {
        await stage.makeDue();
        return hasEnded();
      });
      await heir.close();
      const reported = (await stage.proofs()).filter(({ data }) => data.subject.id === intent);
      expect(reported, `cut off at command ${steps + 1}`).toHaveLength(1);
    }
    expect(steps).toBeGreaterThan(10);
  });

  test('each time that it works on the same check delays the check longer each time', async () => {
    await filled(1);
    const feed = stage.feed();
    feed.start();
    await eventually('it was fed', async () => (await stage.store.counts()).length > 0);
    await feed.close();
    const waits: number[] = [];
    for (let times = 0; times < 4; times += 1) {
      await stage.makeDue();
      const { claimed, nextInMs } = await stage.store.claim(`claim ${times}`, new Map([[CHAIN, 10]]));
      expect(claimed).toHaveLength(1);
      waits.push(Math.round((nextInMs ?? 0) / 1_000));
    }
    expect(waits).toEqual([10, 20, 40, 80]);
    await stage.makeDue();
    const [check] = (await stage.store.claim('last', new Map([[CHAIN, 10]]))).claimed;
    if (check === undefined) throw new Error('nothing was claimed');
    // The working process holds its claim, and does not shorten its lease.
    await stage.store.renew([{ id: check.id, token: 'last' }]);
    const renewed = await stage.store.claim('other', new Map([[CHAIN, 10]]));
    expect(renewed.nextInMs).toBeGreaterThan(80_000);
    expect(renewed.nextInMs).toBeLessThanOrEqual(160_000);
    await stage.store.postpone(check, { inMs: 0, because: '', responses: null });
    expect((await stage.store.claim('anew', new Map([[CHAIN, 10]]))).nextInMs).toBe(10_000);
  });

  test('and comes back finds that it may write nothing', async () => {
    await filled(1);
    const feed = stage.feed();
    feed.start();
    await eventually('it was fed', async () => (await stage.store.counts()).length > 0);
    await feed.close();
    const [slow] = (await stage.store.claim('slow', new Map([[CHAIN, 10]]))).claimed;
    if (slow === undefined) throw new Error('nothing was claimed');
    // Its lease expires, and another process is done before it comes back.
    await stage.makeDue();
    const [fast] = (await stage.store.claim('fast', new Map([[CHAIN, 10]]))).claimed;
    if (fast === undefined) throw new Error('nothing was claimed');
    await runCheck(fast, stage.deps(), AbortSignal.timeout(600_000));
    await runCheck(slow, stage.deps(), AbortSignal.timeout(600_000));
    expect(await stage.proofs()).toHaveLength(1);
    expect(await stage.store.renew([{ id: slow.id, token: 'slow' }])).toEqual([slow.id]);
  });
});

describe('the feed', () => {
  test('reads reports from the first switch-on, however late it starts', async () => {
    const before = await filled(1);
    await redis.del(stage.keys.checksCursor);
    await stage.begin();
    const after = await filled(2);
    // A second process that is switched on changes nothing.
    await stage.begin();
    stage.start();
    await stage.until(after, 'verified');
    expect(await stage.store.of(before)).toEqual([]);
  });

  test('reads them also where a process that checks no chain polls meanwhile', async () => {
    await redis.del(stage.keys.checksCursor);
    const feed = stage.feed();
    await feed.begin();
    const reported = await filled(1);
    // It has not been notified of the newer config yet.
    const without = new PaymentChecks({ ...stage.deps(), readers: new Map() });
    await without.settleRemovedChains();
    await without.close();
    feed.start();
    await eventually('it is fed', async () => (await stage.store.of(reported)).length === 1);
    await feed.close();
  });

  test('states its distance from the end of the event log', async () => {
    const feed = stage.feed();
    expect(await feed.oldestUnreadMs()).toBeNull();
    await filled(1);
    await filled(2);
    const [first] = await logEntries(stage.redis, stage.keys);
    expect(await feed.oldestUnreadMs()).toBe(Number(first?.id.split('-')[0]));
    feed.start();
    await eventually('all was read', async () => (await feed.oldestUnreadMs()) === null);
    await feed.close();
    await redis.set(stage.keys.checksCursor, 'of-another-log|99999999999999-0');
    expect(await feed.oldestUnreadMs()).toBe(Number(first?.id.split('-')[0]));
  });

  test('reports entries that were trimmed before it read them, and goes on behind them', async () => {
    await filled(1);
    await stage.log.trim(Date.now() + 60_000);
    const verifier = stage.start();
    const missed = Promise.withResolvers<string>();
    verifier.signals.on('checks.missed', ({ reason }) => missed.resolve(reason));
    expect(await missed.promise).toMatch(/trimmed/);
    const intent = await filled(2);
    await stage.until(intent, 'verified');
    expect(await stage.proofs()).toHaveLength(1);
  });

  test('reports that the log is another, and reads that one from its beginning', async () => {
    await redis.set(stage.keys.checksCursor, 'of-another-log|99999999999999-0');
    const intent = await filled(1);
    const verifier = stage.start();
    const missed = Promise.withResolvers<string>();
    verifier.signals.on('checks.missed', ({ reason }) => missed.resolve(reason));
    expect(await missed.promise).toMatch(/another/);
    await stage.until(intent, 'verified');
  });

  test('does not pass entries that only a newer version can read', async () => {
    const before = await redis.get(stage.keys.checksCursor);
    await redis.xadd(stage.keys.events, '*', 'v', '999', 'kind', 'event', 'event', '{}');
    await filled(1);
    const feed = stage.feed();
    feed.start();
    await eventually(
      'it has released the lease',
      async () =>
        (await redis.get(stage.keys.checksFence)) !== null &&
        (await redis.get(stage.keys.checksLease)) === null,
    );
    expect(await redis.get(stage.keys.checksCursor)).toBe(before);
    await feed.close();
  });
});

describe('a check that ends in an error', () => {
  test('is requested again later each time, counted each time, and holds up no other', async () => {
    stage.script = (tx) => {
      if (tx === txOf(1)) throw new Error('a record that nothing can read');
      return [found('own'), found('other')];
    };
    const postpone = vi.spyOn(CheckStore.prototype, 'postpone');
    onTestFinished(() => postpone.mockRestore());
    const verifier = stage.start();
    let errors = 0;
    verifier.signals.on('check.failed', () => {
      errors += 1;
    });
    // The end of another check would make it due at once.
    await stage.until(await filled(2), 'verified');
    const poisoned = await filled(1);
    for (const times of [1, 2, 3]) {
      if (times > 1) await stage.makeDue();
      verifier.checks.wake();
      await eventually(
        `it failed ${times} times`,
        async () => ((await stage.store.of(poisoned))[0]?.failed ?? 0) >= times,
      );
    }
    const waits = postpone.mock.calls.map(([check, { failed, inMs }]) => [check.id, failed, inMs] as const);
    const waitOf = (times: number): number =>
      waits.find(([id, failed]) => id.startsWith(poisoned) && failed === times)?.[2] ?? 0;
    expect(waitOf(3)).toBeGreaterThan(waitOf(1));
    expect(await stage.dueInMs(poisoned)).toBeLessThanOrEqual(Math.max(...waits.map(([, , inMs]) => inMs)));
    expect(errors).toBeGreaterThanOrEqual(3);
    await stage.until(await filled(3), 'verified');
    expect((await stage.store.of(poisoned))[0]?.state).toBe('waiting');
  });
});

describe('a chain that is removed from the config', () => {
  test('has all that waits on it end, however much, and nothing else; once it is back it is requested anew', async () => {
    const verifier = stage.start();
    const reported = await filled(1);
    await stage.until(reported, 'verified');
    await verifier.close();
    const feed = stage.feed();
    feed.start();
    const many = await Promise.all(Array.from({ length: 250 }, (_, index) => filled(index + 2)));
    const inState = async (state: string): Promise<number> =>
      (await stage.store.counts()).find((one) => one.state === state)?.count ?? 0;
    await eventually('all were fed', async () => (await inState('waiting')) === many.length);
    await feed.close();
    // Another process works on some of them.
    const [slow] = (await stage.store.claim('slow', new Map([[CHAIN, 1]]))).claimed;
    if (slow === undefined) throw new Error('nothing was claimed');

    const without = new PaymentChecks({ ...stage.deps(), readers: new Map() });
    await eventually('all have ended', async () => {
      await without.settleRemovedChains();
      return (await inState('unchecked')) === many.length;
    });
    await without.close();
    expect(await stage.store.cursor()).toBe('');
    expect((await stage.store.of(reported))[0]?.state).toBe('verified');
    expect((await stage.store.of(many[0] ?? reported))[0]?.because).toBe('chain-not-configured');
    await runCheck(slow, stage.deps(), AbortSignal.timeout(600_000));
    expect(await stage.proofs()).toHaveLength(1);

    const back = stage.start();
    await back.checks.settleRemovedChains();
    await eventually('all are reported', async () => (await inState('verified')) === many.length + 1);
    expect(await stage.proofs()).toHaveLength(many.length + 1);
  });
});

describe('very many checks', () => {
  test('are requested a few at a time, and all of them end', async () => {
    let under = 0;
    let most = 0;
    stage.script = async () => {
      under += 1;
      most = Math.max(most, under);
      await new Promise((resolve) => setImmediate(resolve));
      under -= 1;
      return [found('own'), found('other')];
    };
    const intents = await Promise.all(Array.from({ length: 300 }, (_, index) => filled(index + 1)));
    const sinceMs = performance.now();
    stage.start();
    stage.start(connect({ kind: 'server', url: inject('redisUrl') }));
    await eventually('all have ended', async () => {
      const counts = await stage.store.counts();
      return counts.length === 1 && counts[0]?.state === 'verified' && counts[0].count === intents.length;
    });
    expect(most).toBeLessThanOrEqual(16);
    expect(await stage.proofs()).toHaveLength(intents.length);
    expect(new Set(stage.requests).size).toBe(intents.length);
    // A claim of a process that stalled for its whole lease passes to another process, and is requested once more.
    if (performance.now() - sinceMs < LEASE_MS) expect(stage.requests).toHaveLength(intents.length);
  });
});
