import { clampAt, tightest } from '../../src/domain/cadence/clamp.ts';
import { type HazardCurve, rateAt } from '../../src/domain/cadence/hazard.ts';
import { chooseListings } from '../../src/domain/cadence/listing-choice.ts';
import { plannedDemand } from '../../src/domain/cadence/price.ts';
import { waitSeconds } from '../../src/domain/cadence/wait.ts';
import { WATCH_RULES } from '../../src/domain/cadence/watch-rules.ts';
import type { Heap } from './heap.ts';
import type { Knowledge, StageName } from './knowledge.ts';
import type { Transfer } from './workload.ts';

/** A transfer as the daemon knows it: its stage, since when, and when it was last seen. */
export type Member = { transfer: Transfer; wallet: Wallet; stage: StageName; since: number; seenAt: number };

/** A wallet: all its transfers (the upstream shows the newest first), those in flight, and the looks planned. */
export type Wallet = {
  transfers: Transfer[];
  members: Member[];
  looks: Map<string, Look>;
  pageSeenAt: number;
};

/** A request that is made again and again: a page of a wallet, or one transfer. */
export type Look = {
  wallet: Wallet;
  page: 'head' | 'narrowed' | null;
  members: readonly Member[];
  lastAt: number;
  dueAt: number;
  demand: number;
  /** Raised when the look is planned anew; an entry of the queue with another number is void. */
  version: number;
};

/** What is due: a look as planned, or an exact look-up of what left a page. */
export type Due = { at: number; look: Look; version: number } | { at: number; lookUp: Member };

/** What plans share: the queue of the budget, the price, and the sum of what all planned looks want. */
export type Plans = {
  queue: Heap<Due>;
  knowledge: Knowledge;
  price: number;
  demand: number;
  planned: number;
  decisions: { count: number; milliseconds: number };
};

/** What one page shows. */
const PAGE_SIZE = 50;

/** The oldest transfer that the newest page of a wallet shows, by its id, which rises with birth. */
export function headBeginsAt(wallet: Wallet): number {
  return wallet.transfers.at(-PAGE_SIZE)?.id ?? wallet.transfers[0]?.id ?? 0;
}

/** Plans every look of a wallet: chooses the pages and look-ups, and when each is due. */
export function planLooks(plans: Plans, wallet: Wallet, now: number): void {
  const { price, knowledge } = plans;
  const headFrom = headBeginsAt(wallet);
  const underWay = wallet.members.map((member) => {
    const { weight, limits } = WATCH_RULES[member.stage];
    const ageSeconds = Math.max(0, now - member.since);
    return {
      member,
      status: member.stage,
      hazard: rateAt(curveOf(knowledge, member), ageSeconds),
      weight,
      clamp: clampAt(limits, { ageSeconds, price }),
      onHead: member.transfer.id >= headFrom,
    };
  });
  // Births are told, so no look is needed for new transfers.
  const { listings, single } = chooseListings(underWay, { price, arrivals: [], narrows: true });
  const wanted = new Map<string, { page: Look['page']; members: Member[] }>();
  for (const { listing, members } of listings) {
    const page = listing === 'head' ? 'head' : 'narrowed';
    wanted.set(listing, { page, members: members.map(({ member }) => member) });
  }
  for (const { member } of single) wanted.set(String(member.transfer.id), { page: null, members: [member] });
  for (const [name, look] of wallet.looks) {
    if (wanted.has(name)) continue;
    look.version++;
    plans.demand -= look.demand;
    plans.planned--;
    wallet.looks.delete(name);
  }
  for (const [name, { page, members: shown }] of wanted) {
    let look = wallet.looks.get(name);
    if (look === undefined) {
      look = newLook(wallet, page, shown);
      wallet.looks.set(name, look);
      plans.planned++;
    }
    look.members = shown;
    schedule(plans, look, now);
  }
}

function newLook(wallet: Wallet, page: Look['page'], members: readonly Member[]): Look {
  const seenAt = Math.max(...members.map((member) => member.seenAt));
  const lastAt = page === null ? seenAt : Math.max(wallet.pageSeenAt, seenAt);
  return { wallet, page, members, lastAt, dueAt: -1, demand: 0, version: 0 };
}

/** The decision itself: when a look is due. */
function schedule(plans: Plans, look: Look, now: number): void {
  const { price, knowledge } = plans;
  const startedMs = performance.now();
  const clamps = look.members.map(({ stage, since }) =>
    clampAt(WATCH_RULES[stage].limits, { ageSeconds: Math.max(0, now - since), price }),
  );
  const wait = waitSeconds({
    terms: look.members.map((member) => ({
      curve: curveOf(knowledge, member),
      ageSeconds: look.lastAt - member.since,
      weight: WATCH_RULES[member.stage].weight,
      deadlineSeconds: member.stage === 'pending' ? member.transfer.expiresAt - member.since : null,
    })),
    arrivals: 0,
    price,
    clamp: tightest(clamps),
  });
  plans.decisions.milliseconds += performance.now() - startedMs;
  plans.decisions.count++;
  const demand = plannedDemand({ price, waitSeconds: wait });
  plans.demand += demand - look.demand;
  look.demand = demand;
  const dueAt = Math.max(now, look.lastAt + wait);
  if (dueAt === look.dueAt) return;
  look.dueAt = dueAt;
  look.version++;
  plans.queue.push({ at: dueAt, look, version: look.version });
}

function curveOf(knowledge: Knowledge, { transfer, stage }: Member): HazardCurve {
  return knowledge.curve(transfer.route, stage);
}
