import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import type { OpenTransfer } from '../../src/domain/cadence/wallet.ts';
import { intentId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import type { PageFacts } from '../../src/store/observed.ts';
import type { PollStart } from '../../src/store/poll-start.ts';
import { openText, WalletStore } from '../../src/store/wallets.ts';
import { PlanStage, wallets } from '../support/plan-stage.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { openTexts, storedOpen } from '../support/stored-open.ts';

const [WALLET] = wallets(1) as [SubjectId];
const SINCE_MS = 1_795_000_000_000;

const stages: PlanStage[] = [];
afterAll(() => {
  for (const stage of stages) stage.close();
});

const TRANSFERS = fc.subarray([0, 1, 2, 3], { maxLength: 2 });

/** The changes of a poll; `unread`: open ones that were not read; where `isOutdated`, another commit came since. */
const CHANGES = fc.record({
  open: TRANSFERS,
  unread: TRANSFERS,
  isOutdated: fc.boolean(),
  ended: TRANSFERS,
});

/** A poll of the transfer itself, or the end of a former poll of the wallet, which comes late. */
const MEANWHILE = fc.oneof(
  fc.record({ noted: fc.nat(3), isOver: fc.boolean() }),
  fc.constant({ noted: null, isOver: false }),
);

const POLL = fc.record({
  process: fc.nat(1),
  changes: CHANGES,
  meanwhile: fc.array(MEANWHILE, { maxLength: 2 }),
  isLate: fc.boolean(),
});

type Changes = typeof CHANGES extends fc.Arbitrary<infer T> ? T : never;

let seconds = 0;

function transferOf(number: number): OpenTransfer {
  seconds += 1;
  const seenAtMs = SINCE_MS + 1_000 * seconds;
  const place = { headAtMs: number % 2 === 0 ? seenAtMs : null, sinceMs: SINCE_MS };
  return { subject: intentId(hashOf(number + 1)), status: 'pending', route: '1:10', seenAtMs, ...place };
}

/** The observations of a poll that began so, as a page of its wallet makes them. */
function observedOf({ open, token }: PollStart, changes: Changes, moves: number): Partial<PageFacts> {
  const after = new Map<string, OpenTransfer>(open.transfers.map((transfer) => [transfer.subject, transfer]));
  const shown = (numbers: readonly number[]) =>
    Object.fromEntries(
      numbers.map((number) => {
        const transfer = transferOf(number);
        after.set(transfer.subject, transfer);
        return [transfer.subject, openText(transfer)];
      }),
    );
  const texts = {
    open: shown(changes.open),
    unread: { open: shown(changes.unread), moves: changes.isOutdated ? moves + 1 : moves },
  };
  const ended = changes.ended.map((number) => intentId(hashOf(number + 1)));
  for (const subject of ended) after.delete(subject);
  const isChanged = [changes.open, changes.unread, changes.ended].some((numbers) => numbers.length > 0);
  const change = { before: open.version, version: token, transfers: [...after.values()] };
  return { ...texts, ended, ...(isChanged ? { after: change } : {}) };
}

test('the open transfers in the memory of a process are those in Redis, or are read again', async () => {
  const seen = { fromMemory: 0, anew: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(POLL, { minLength: 4, maxLength: 20 }), async (polls) => {
      const stage = new PlanStage();
      stages.push(stage);
      const { redis, keys } = stage;
      await stage.budget(100);
      await stage.name([WALLET]);
      const processes = [new WalletStore(redis, keys), new WalletStore(redis, keys)];
      const late: (() => Promise<unknown>)[] = [];
      for (const { process, changes, meanwhile, isLate } of polls) {
        stage.nowMs += 10_000;
        const store = processes[process] ?? stage.wallets;
        const claimed = await stage.next();
        const before = store.heldOpen(WALLET);
        const start = claimed === null ? null : await stage.take(claimed, 'p1', store);
        if (start === null) throw new Error('the wallet was not claimed');
        expect(openTexts(start.open.transfers)).toEqual(openTexts(await storedOpen(redis, keys, WALLET)));
        if (start.open === before) seen.fromMemory += 1;
        else seen.anew += 1;
        for (const { noted, isOver } of meanwhile) {
          if (noted === null) await late.shift()?.();
          else await stage.wallets.noteTransfer([WALLET], { ...transferOf(noted), isOver });
        }
        const moves = Number((await redis.hget(keys.wallet(WALLET), 'moves')) ?? 0);
        const observed = observedOf(start, changes, moves);
        if (observed.after !== undefined) store.holdOpen(WALLET, observed.after);
        // The next poll begins before the end of this one comes: its lease has ended, or its process was frozen.
        if (isLate) late.push(() => stage.end(start, 'next', {}, observed));
        await stage.end(start, 'next', {}, isLate ? {} : observed);
      }
    }),
    { numRuns: 60 },
  );
  expect(Math.min(seen.fromMemory, seen.anew)).toBeGreaterThan(10);
});
