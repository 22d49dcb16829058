import { firstPrice, type PriceState, steer } from '../../src/domain/cadence/price.ts';
import type { Detection, Outcome } from './delays.ts';
import { Heap } from './heap.ts';
import type { Knowledge } from './knowledge.ts';
import { type Due, headBeginsAt, type Member, type Plans, planLooks, type Wallet } from './watch.ts';
import { type Load, statusAt, type Transfer } from './workload.ts';

/** A run of the cadence: what it is asked, what it knows, and its budget in requests per second at a moment. */
export type Run = {
  transfers: readonly Transfer[];
  load: Pick<Load, 'settlements' | 'seconds'>;
  knowledge: Knowledge;
  budgetAt: (at: number) => number;
};

/** What was found and set when the price was steered: how long the first look waits, and how many were made since. */
export type Steering = { at: number; price: number; behindSeconds: number; served: number };

/** An outcome, with what a decision cost, every steering, and how long a look waited for its turn on average. */
export type CadenceOutcome = Outcome & {
  decisionMicroseconds: number;
  steerings: readonly Steering[];
  turnSeconds: number;
};

/** How often the price is steered, and how often what was learned is taken in. Seconds. */
const STEER_EVERY = 1;
const REFRESH_EVERY = 10;

type World = Run & {
  plans: Plans;
  price: PriceState;
  wallets: Map<number, Wallet>;
  born: number;
  freeAt: number;
  served: number;
  lookUps: number;
  since: { served: number; lookUps: number };
  waited: number;
  steerings: Steering[];
  fills: Detection[];
  settlements: Detection[];
};

/**
 * Runs the cadence under a virtual clock, with one request every `1 / budget` seconds at most, in the order in which
 * looks fell due. Answers take no time. A transfer is told of when it is born, as by whoever funded it.
 */
export function simulate(run: Run): CadenceOutcome {
  const world = begin(run);
  const { transfers, load } = run;
  let steerAt = 0;
  while (true) {
    const due = nextDue(world.plans.queue);
    const serveAt = due === undefined ? Number.POSITIVE_INFINITY : Math.max(world.freeAt, due.at);
    const bornAt = transfers[world.born]?.bornAt ?? Number.POSITIVE_INFINITY;
    const now = Math.min(serveAt, bornAt, steerAt);
    if (now >= load.seconds) break;
    if (now === steerAt) {
      steerPrice(world, { now, behindSeconds: due === undefined ? 0 : Math.max(0, now - due.at) });
      if (now % REFRESH_EVERY === 0) run.knowledge.refresh(now);
      steerAt += STEER_EVERY;
    } else if (now === bornAt) {
      planLooks(world.plans, bear(world, now), now);
    } else if (due !== undefined) {
      world.plans.queue.pop();
      world.freeAt = now + 1 / run.budgetAt(now);
      world.served++;
      world.waited += now - due.at;
      serve(world, due, now);
    }
  }
  const { count, milliseconds } = world.plans.decisions;
  return {
    fills: world.fills,
    settlements: world.settlements,
    requestsPerSecond: world.served / load.seconds,
    decisionMicroseconds: (1_000 * milliseconds) / count,
    steerings: world.steerings,
    turnSeconds: world.waited / world.served,
  };
}

/** The world at 0: everything in flight has just been handed over, and the price is what fits that. */
function begin(run: Run): World {
  const { knowledge, transfers } = run;
  const world: World = {
    ...run,
    plans: {
      queue: new Heap<Due>(),
      knowledge,
      price: 1,
      demand: 0,
      planned: 0,
      decisions: { count: 0, milliseconds: 0 },
    },
    price: firstPrice(-STEER_EVERY * 1_000),
    wallets: new Map(),
    born: 0,
    freeAt: 0,
    served: 0,
    lookUps: 0,
    since: { served: 0, lookUps: 0 },
    waited: 0,
    steerings: [],
    fills: [],
    settlements: [],
  };
  for (let next = transfers[0]; next !== undefined && next.bornAt < 0; next = transfers[world.born]) {
    bear(world, 0);
  }
  spread(world);
  for (const wallet of world.wallets.values()) planLooks(world.plans, wallet, 0);
  return world;
}

/** Nobody has looked at everything at once: each was last seen at another moment of the round before 0. */
function spread({ wallets, budgetAt }: World): void {
  const members = [...wallets.values()].flatMap((wallet) => wallet.members);
  const roundSeconds = members.length / budgetAt(0);
  members.forEach((member, index) => {
    const seenAt = -(((index * GOLDEN) % 1) * roundSeconds);
    member.seenAt = Math.max(member.since, seenAt);
  });
}

const GOLDEN = 0.618_033_988_749_895;

function nextDue(queue: Heap<Due>): Due | undefined {
  let due = queue.peek();
  while (due !== undefined && 'look' in due && due.version !== due.look.version) {
    queue.pop();
    due = queue.peek();
  }
  return due;
}

function steerPrice(world: World, { now, behindSeconds }: { now: number; behindSeconds: number }): void {
  const { plans, since } = world;
  const served = world.served - since.served;
  world.price = steer(world.price, {
    nowMs: now * 1_000,
    budgetPerSecond: world.budgetAt(now),
    demand: plans.demand,
    planned: plans.planned,
    served,
    unplanned: world.lookUps - since.lookUps,
    behindSeconds,
    pushedBack: false,
  });
  world.since = { served: world.served, lookUps: world.lookUps };
  plans.price = world.price.price;
  world.steerings.push({ at: now, price: plans.price, behindSeconds, served });
}

/** Hands over the next transfer. */
function bear(world: World, now: number): Wallet {
  const transfer = world.transfers[world.born++];
  if (transfer === undefined) throw new Error('there is no next transfer');
  const wallet = world.wallets.get(transfer.wallet) ?? newWallet(world, transfer.wallet);
  wallet.transfers.push(transfer);
  const status = statusAt(transfer, now);
  if (status === 'pending' || (status === 'filled' && world.load.settlements)) {
    const since = status === 'pending' ? transfer.bornAt : transfer.filledAt;
    wallet.members.push({ transfer, wallet, stage: status, since, seenAt: now });
  }
  return wallet;
}

function newWallet(world: World, id: number): Wallet {
  const wallet = { transfers: [], members: [], looks: new Map(), pageSeenAt: Number.NEGATIVE_INFINITY };
  world.wallets.set(id, wallet);
  return wallet;
}

/** Makes a request: takes in what it shows, and plans the wallet anew. */
function serve(world: World, due: Due, now: number): void {
  if ('lookUp' in due) {
    world.lookUps++;
    see(world, due.lookUp, now);
    planLooks(world.plans, due.lookUp.wallet, now);
    return;
  }
  const { look } = due;
  const { wallet } = look;
  look.lastAt = now;
  look.dueAt = -1;
  if (look.page !== null) wallet.pageSeenAt = now;
  if (look.page === 'head') {
    const from = headBeginsAt(wallet);
    for (const member of [...wallet.members]) if (member.transfer.id >= from) see(world, member, now);
  } else if (look.page === 'narrowed') {
    for (const member of look.members) {
      if (statusAt(member.transfer, now) === member.stage) see(world, member, now);
      else world.plans.queue.push({ at: now, lookUp: member });
    }
  } else {
    for (const member of look.members) see(world, member, now);
  }
  planLooks(world.plans, wallet, now);
}

/** Takes in what the upstream says of a transfer, learns from it, and forgets it when nothing more is waited for. */
function see(world: World, member: Member, now: number): void {
  const { wallet, transfer } = member;
  if (!wallet.members.includes(member)) return;
  const status = statusAt(transfer, now);
  const ended = status !== member.stage;
  learn(world, member, { at: now, ended: ended && status !== 'expired' });
  if (!ended) {
    member.seenAt = now;
    return;
  }
  if (member.stage === 'pending' && status !== 'expired') {
    world.fills.push({ at: now, delay: now - transfer.filledAt });
  }
  if (status === 'settled') world.settlements.push({ at: now, delay: now - transfer.settledAt });
  if (status === 'filled' && world.load.settlements) {
    member.stage = 'filled';
    member.since = transfer.filledAt;
    member.seenAt = now;
  } else {
    wallet.members.splice(wallet.members.indexOf(member), 1);
  }
}

function learn(
  world: World,
  { transfer, stage, since, seenAt }: Member,
  look: { at: number; ended: boolean },
): void {
  world.knowledge.learn({
    route: transfer.route,
    stage,
    interval: { fromSeconds: seenAt - since, toSeconds: look.at - since, ended: look.ended },
  });
}
