import { beforeAll, describe, expect, test } from 'vitest';
import { createDirector } from '../../sandbox/faults/director.ts';
import { createAgenda } from '../../sandbox/world/agenda.ts';
import { createGenerator } from '../../sandbox/world/generator.ts';
import type { StatusRecord } from '../../sandbox/world/record.ts';
import { createWorld, type Happening, type Transition, type World } from '../../sandbox/world/world.ts';

const START_MS = 1_763_638_259_000;

type Seen = { record: StatusRecord; nowMs: number };

/** Lives ten virtual minutes of births and then lets everything drain, one step at a time. */
function liveOn({ seed, timeScale }: { seed: number; timeScale: number }) {
  const agenda = createAgenda();
  const generator = createGenerator({ seed, wallets: 10 });
  const world = createWorld({ wallets: generator.wallets.map(({ address }) => address) });
  const records = new Map<string, Seen[]>();
  const watched: World = {
    ...world,
    apply(happening) {
      world.apply(happening);
      const entry = recordOf(world, happening);
      if (entry === undefined) return;
      const seen = { record: entry.record, nowMs: happening.nowMs };
      records.set(entry.record.id, [...(records.get(entry.record.id) ?? []), seen]);
    },
  };
  const director = createDirector({
    world: watched,
    agenda,
    generator,
    timeScale,
    pastTransfers: 100,
    transfersPerSecond: 1,
  });
  director.begin(START_MS);
  let stopped = false;
  for (let dueMs = agenda.nextDueMs(); dueMs !== null; dueMs = agenda.nextDueMs()) {
    const nowMs = Math.ceil(dueMs);
    if (!stopped && nowMs > START_MS + 600_000) {
      director.setPace(0, nowMs);
      stopped = true;
    }
    agenda.runDue(nowMs);
  }
  return { world, records, transitions: world.transitions.read(), living: director.livingTransfers() };
}

function recordOf(world: World, { plan, change }: Happening) {
  if (change.thing === 'intent') return world.intent(plan.intentHash);
  if (change.thing === 'quote') return world.quote(plan.quoteUuid ?? '');
  return change.thing === 'job' ? world.job(plan.job?.uuid ?? '') : undefined;
}

const NEXT: Record<string, Record<string, string[]>> = {
  intent: {
    born: ['pending'],
    pending: ['filled', 'expired', 'failed'],
    filled: ['settled'],
    expired: ['refundable'],
    refundable: ['refunded'],
  },
  quote: { born: ['active'], active: ['submitted'] },
  gasless: { born: ['pending'], pending: ['submitted'], submitted: ['published', 'failed'] },
  'gasless:gateway': {
    born: ['PENDING'],
    PENDING: ['PERMIT_SENT', 'COMPLETED', 'FAILED'],
    PERMIT_SENT: ['COMPLETED', 'FAILED'],
  },
  vault: {
    born: ['PENDING'],
    PENDING: ['FUNDING_DETECTED', 'EXPIRED_UNFUNDED'],
    FUNDING_DETECTED: ['PUBLISHED'],
  },
};

function kindOf(subject: string): string {
  return subject.startsWith('gasless:gateway:') ? 'gasless:gateway' : subject.slice(0, subject.indexOf(':'));
}

function bySubject(transitions: Transition[]): Map<string, Transition[]> {
  return Map.groupBy(transitions, ({ subject }) => subject);
}

describe.each([1, 20, 500])('lives at time scale %i', (timeScale) => {
  let lived: ReturnType<typeof liveOn>;
  beforeAll(() => {
    lived = liveOn({ seed: 7, timeScale });
  });

  test('each transition starts where the one before it ended, and only usual steps are made', () => {
    const kinds = new Set<string>();
    for (const [subject, transitions] of bySubject(lived.transitions)) {
      let from: string | null = null;
      for (const transition of transitions) {
        expect(transition.from).toBe(from);
        expect(NEXT[kindOf(subject)]?.[from ?? 'born']).toContain(transition.to);
        from = transition.to;
      }
      kinds.add(kindOf(subject));
    }
    expect(kinds).toEqual(new Set(Object.keys(NEXT)));
  });

  test('every usual step is seen', () => {
    const seen = new Set(
      lived.transitions.map(({ subject, from, to }) => `${kindOf(subject)} ${from ?? 'born'} ${to}`),
    );
    const all = Object.entries(NEXT).flatMap(([kind, steps]) =>
      Object.entries(steps).flatMap(([from, tos]) => tos.map((to) => `${kind} ${from} ${to}`)),
    );
    expect([...seen].sort()).toEqual(all.sort());
  });

  test('every life ends', () => {
    expect(lived.living).toBe(0);
    for (const [subject, transitions] of bySubject(lived.transitions)) {
      if (kindOf(subject) === 'quote') continue;
      expect(NEXT[kindOf(subject)]?.[transitions.at(-1)?.to ?? '']).toBeUndefined();
    }
  });

  test('transitions are logged in the order of their times', () => {
    const times = lived.transitions.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((left, right) => left - right));
  });

  test('updatedAt never decreases and never lies in the future', () => {
    for (const seen of lived.records.values()) {
      let before = 0;
      for (const { record, nowMs } of seen) {
        expect(record.updatedAt).toBeGreaterThanOrEqual(before);
        expect(record.updatedAt).toBeLessThanOrEqual(nowMs / 1000);
        before = record.updatedAt ?? 0;
      }
    }
  });

  test('details that come after the fill have a newer updatedAt', () => {
    let late = 0;
    for (const seen of lived.records.values()) {
      const fill = seen.findIndex(({ record }) => record.status === 'filled');
      const filled = seen[fill]?.record;
      const next = seen[fill + 1]?.record;
      if (filled === undefined || filled.destinationTx !== undefined) continue;
      late += 1;
      expect(next).toMatchObject({ status: 'filled', destinationTx: {}, steps: [{ status: 'FULFILLED' }] });
      expect(next?.updatedAt).toBeGreaterThan(filled.updatedAt ?? 0);
    }
    expect(late).toBeGreaterThan(10);
  });

  test('an intent that a quote or job names is known at that time', () => {
    const births = new Map<string, number>();
    for (const { subject, from, at } of lived.transitions) if (from === null) births.set(subject, at);
    let named = 0;
    for (const seen of lived.records.values()) {
      for (const { record, nowMs } of seen) {
        for (const hash of record.intentHashes ?? []) {
          expect(births.get(`intent:${hash}`)).toBeLessThanOrEqual(nowMs);
          named += 1;
        }
      }
    }
    expect(named).toBeGreaterThan(0);
  });

  test('a vault that is not funded expires after its deadline, a funded one publishes before', () => {
    const ends = lived.transitions.filter(({ subject }) => kindOf(subject) === 'vault');
    let expired = 0;
    for (const { subject, to, at } of ends) {
      const [, chainId, address] = subject.split(':');
      const deadline = lived.world.vault({ chainId: Number(chainId), address: String(address) })?.record
        .deadline;
      if (deadline === undefined) throw new Error(`no vault ${subject}`);
      if (to === 'EXPIRED_UNFUNDED') {
        expect(at).toBeGreaterThanOrEqual(deadline * 1000);
        expired += 1;
      }
      // Deadlines are whole seconds, which at a large time scale are longer than the steps before them.
      if (to === 'PUBLISHED' && timeScale === 1) expect(at).toBeLessThan(deadline * 1000);
    }
    expect(expired).toBeGreaterThan(0);
  });

  test('every life can be requested and is a subject', () => {
    const subjects = lived.world.subjects();
    const intents = [...bySubject(lived.transitions).keys()].filter(
      (subject) => kindOf(subject) === 'intent',
    );
    expect(intents.length).toBeGreaterThan(400);
    for (const subject of intents) {
      const hash = subject.slice('intent:'.length);
      expect(lived.world.intent(hash)?.record.id).toBe(subject);
      expect(subjects.intents).toContain(hash);
    }
  });
});

test('the same seed gives the same transitions', () => {
  expect(liveOn({ seed: 9, timeScale: 20 }).transitions).toEqual(
    liveOn({ seed: 9, timeScale: 20 }).transitions,
  );
});

test('time scale 20 makes a life twenty times shorter', () => {
  const lengthMs = (timeScale: number) => {
    const intents = [...bySubject(liveOn({ seed: 7, timeScale }).transitions)].filter(([id]) =>
      id.startsWith('intent:'),
    );
    const lengths = intents.map(([, steps]) => (steps.at(-1)?.at ?? 0) - (steps[0]?.at ?? 0));
    return lengths.toSorted((left, right) => left - right)[lengths.length >> 1] ?? 0;
  };
  expect(lengthMs(1) / lengthMs(20)).toBeGreaterThan(15);
});

describe('the pace', () => {
  /** Number of transfers born in ten virtual minutes, after the pace was set to each of these in turn. */
  function births(paces: number[]): number {
    const agenda = createAgenda();
    const generator = createGenerator({ seed: 1, wallets: 10 });
    const world = createWorld({ wallets: [] });
    const drawn = new Set<number>();
    const counting: typeof generator = {
      ...generator,
      transfer(which) {
        if (which.stream === 'born') drawn.add(which.index);
        return generator.transfer(which);
      },
    };
    const settings = { world, agenda, generator: counting, timeScale: 100, pastTransfers: 0 };
    const director = createDirector({ ...settings, transfersPerSecond: 1 });
    director.begin(START_MS);
    for (const pace of paces) director.setPace(pace, START_MS);
    for (let dueMs = agenda.nextDueMs(); dueMs !== null; dueMs = agenda.nextDueMs()) {
      if (dueMs > START_MS + 600_000) break;
      agenda.runDue(dueMs);
    }
    return drawn.size;
  }

  test('of 0 stops the births', () => {
    expect(births([0])).toBe(0);
  });

  test('that was set last is the one that counts', () => {
    expect(births([5, 0, 2])).toBe(births([2]));
    expect(births([2])).toBeGreaterThan(1_000);
    expect(births([2])).toBeLessThan(1_400);
  });
});

test('past transfers are shown on wallet pages but are no subjects and made no transition', () => {
  const generator = createGenerator({ seed: 1, wallets: 10 });
  const wallets = generator.wallets.map(({ address }) => address);
  const world = createWorld({ wallets });
  createDirector({
    world,
    agenda: createAgenda(),
    generator,
    timeScale: 1,
    pastTransfers: 500,
    transfersPerSecond: 0,
  }).begin(START_MS);
  const shown = new Map<string, StatusRecord>();
  for (const wallet of wallets) {
    const { entries } = world.walletPage({ wallet, status: null, before: null, limit: 1_000 });
    expect(entries.length).toBeGreaterThan(0);
    for (const { record } of entries) shown.set(record.id, record);
  }
  expect(shown.size).toBe(500);
  const statuses = new Set([...shown.values()].map(({ status }) => status));
  expect(statuses).toEqual(new Set(['settled', 'refunded']));
  for (const { updatedAt } of shown.values()) expect(updatedAt).toBeLessThan(START_MS / 1000);
  expect(world.transitions.read()).toEqual([]);
  expect(world.subjects().intents.every((hash) => !shown.has(`intent:${hash}`))).toBe(true);
});
