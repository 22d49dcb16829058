import type { Agenda } from '../world/agenda.ts';
import type { Generator } from '../world/generator.ts';
import { type Change, type LifeStep, lifeOf } from '../world/life.ts';
import { type Fate, type Origin, type TransferPlan, VAULT_VALIDITY_SECONDS } from '../world/plan.ts';
import type { World } from '../world/world.ts';

/** Starts transfers and moves them through their lives. */
export type Director = {
  begin(nowMs: number): void;
  /** Changes the births per second of wall clock; 0 stops them. */
  setPace(transfersPerSecond: number, nowMs: number): void;
  /** Starts a life at once. `deadline` is its vault's, in Unix seconds. */
  live(life: Life, nowMs: number): void;
  transfersPerSecond(): number;
  livingTransfers(): number;
};

/** Transfers that are named at start, so that clients can subscribe before they exist. */
const ANNOUNCED: readonly { origin: Origin; fate?: Fate }[] = [
  { origin: 'direct', fate: 'settled' },
  { origin: 'quote' },
  { origin: 'gasless', fate: 'settled' },
  { origin: 'vault', fate: 'settled' },
  { origin: 'direct', fate: 'refunded' },
  { origin: 'quote' },
  { origin: 'gasless' },
  { origin: 'vault' },
  { origin: 'direct', fate: 'late-details' },
  { origin: 'quote' },
  { origin: 'gasless', fate: 'unborn' },
  { origin: 'vault' },
  { origin: 'direct' },
  { origin: 'quote' },
  { origin: 'gasless' },
  { origin: 'vault', fate: 'unborn' },
];

/** The announced transfers begin within this time, before it is scaled. */
const ANNOUNCED_WITHIN_SECONDS = 60;

const REORGANISED_AFTER_SECONDS = 10;
const FILLED_AGAIN_AFTER_SECONDS = 20;

const PAST_DAYS = 7;
const PAST_REFUNDED_EVERY = 15;

/** A life, or the rest of it. `deadline` is its vault's, in Unix seconds. */
export type Life = {
  plan: TransferPlan;
  deadline: number;
  steps: LifeStep[];
  /** Set once its chain was reorganised, which happens to a life once. */
  reorganised?: true;
};

/** Creates the director. `timeScale` divides durations of lives, not the pace of births; `pastTransfers` ended before `begin`. */
export function createDirector({
  world,
  agenda,
  generator,
  timeScale,
  pastTransfers,
  transfersPerSecond,
  isReorganised = () => false,
  prepare = (plan) => plan,
}: {
  world: World;
  agenda: Agenda;
  generator: Generator;
  timeScale: number;
  pastTransfers: number;
  transfersPerSecond: number;
  /** Called when an intent is filled; true: its chain drops the block, so the intent is filled once more. */
  isReorganised?: () => boolean;
  /** Called for every transfer that the director starts; returns its plan. */
  prepare?: (plan: TransferPlan) => TransferPlan;
}): Director {
  let pace = transfersPerSecond;
  // A birth scheduled under an older pace finds that its number has passed, and does nothing.
  let paceNumber = 0;
  let births = 0;
  let living = 0;

  const scaledMs = (seconds: number): number => (seconds * 1000) / timeScale;

  function start(drawn: TransferPlan, bornAtMs: number): void {
    const plan = prepare(drawn);
    living += 1;
    // Rounded down, so that a vault never expires before its deadline has passed.
    const deadline = Math.floor((bornAtMs + scaledMs(VAULT_VALIDITY_SECONDS)) / 1000);
    schedule({ plan, deadline, steps: lifeOf(plan) }, bornAtMs);
  }

  /** Schedules the next step; the one before was due at `sinceMs`. A change is stamped with its real time, as answers show it. */
  function schedule(life: Life, sinceMs: number): void {
    const {
      plan,
      deadline,
      steps: [next, ...later],
    } = life;
    if (next === undefined) {
      living -= 1;
      return;
    }
    const wantedMs = sinceMs + scaledMs(next.afterSeconds);
    const updatedAt = world.intent(plan.intentHash)?.record.updatedAt ?? 0;
    const dueMs = next.newSecond ? Math.max(wantedMs, (updatedAt + 1) * 1000) : wantedMs;
    agenda.add(dueMs, (nowMs) => {
      for (const change of next.changes) world.apply({ plan, deadline, change, nowMs });
      if (isFill(next) && life.reorganised === undefined && isReorganised()) {
        const steps = [...reorganised(next), ...later];
        schedule({ plan, deadline, steps, reorganised: true }, dueMs);
      } else {
        schedule({ ...life, steps: later }, dueMs);
      }
    });
  }

  function scheduleBirth(sinceMs: number): void {
    if (pace === 0) return;
    const scheduledUnder = paceNumber;
    const dueMs = sinceMs + (generator.gap(births) * 1000) / pace;
    agenda.add(dueMs, () => {
      if (scheduledUnder !== paceNumber) return;
      const index = births;
      births += 1;
      start(generator.transfer({ stream: 'born', index }), dueMs);
      scheduleBirth(dueMs);
    });
  }

  function fillThePast(nowMs: number): void {
    const spanSeconds = PAST_DAYS * 24 * 3600;
    for (let index = 0; index < pastTransfers; index++) {
      const refunded = index % PAST_REFUNDED_EVERY === PAST_REFUNDED_EVERY - 1;
      const plan = generator.transfer({ stream: 'past', index, fate: refunded ? 'refunded' : 'settled' });
      const ageSeconds = ((pastTransfers - index) * spanSeconds) / (pastTransfers + 1);
      world.remember(plan, {
        change: refunded ? refundedChange : settledChange,
        updatedAt: Math.floor(nowMs / 1000 - ageSeconds),
      });
    }
  }

  return {
    begin(nowMs) {
      fillThePast(nowMs);
      ANNOUNCED.forEach((wanted, index) => {
        const plan = generator.transfer({ stream: 'announced', index, ...wanted });
        world.announce(plan);
        const afterSeconds = (ANNOUNCED_WITHIN_SECONDS * index) / ANNOUNCED.length;
        start(plan, nowMs + scaledMs(afterSeconds));
      });
      scheduleBirth(nowMs);
    },
    setPace(perSecond, nowMs) {
      pace = perSecond;
      paceNumber += 1;
      scheduleBirth(nowMs);
    },
    live(life, nowMs) {
      living += 1;
      schedule(life, nowMs);
      // The client that requested it finds it in its next poll.
      agenda.runDue(nowMs);
    },
    transfersPerSecond: () => pace,
    livingTransfers: () => living,
  };
}

/** Steps after a reorganisation: the intent is pending again, and filled again when its transaction is included. */
function reorganised(fill: LifeStep): LifeStep[] {
  const dropped: Change = { thing: 'intent', status: 'pending', shown: 'source' };
  return [
    { afterSeconds: REORGANISED_AFTER_SECONDS, changes: [dropped], newSecond: true },
    { ...fill, afterSeconds: FILLED_AGAIN_AFTER_SECONDS, newSecond: true },
  ];
}

function isFill({ changes }: LifeStep): boolean {
  return changes.some((change) => change.thing === 'intent' && change.status === 'filled');
}

const settledChange: Change & { thing: 'intent' } = {
  thing: 'intent',
  status: 'settled',
  shown: 'destination',
};
const refundedChange: Change & { thing: 'intent' } = { thing: 'intent', status: 'refunded', shown: 'refund' };
