import type { Clamp } from './clamp.ts';
import { tightest } from './clamp.ts';

/**
 * A transfer of a wallet that is not finished, as the choice sees it. `hazard` is its present chance of a change per
 * second, and `weight` what a second of delay is worth. `onHead`: the wallet's newest page showed it. `status` is in
 * lower case; `narrowable` when the upstream lets a page be narrowed to it.
 */
export type InFlight = {
  status: string;
  hazard: number;
  weight: number;
  clamp: Clamp;
  onHead: boolean;
  narrowable: boolean;
};

/** Which requests show a wallet's transfers. A transfer stands in exactly one place. */
export type WalletPlan<T> = {
  /** The newest page; null when nothing wants it. */
  head: readonly T[] | null;
  /** A page narrowed to a status. What leaves it is looked up at once. */
  narrowed: readonly { status: string; members: readonly T[] }[];
  /** Exact look-ups, one request each. */
  exact: readonly T[];
};

/** What one request can show. */
const PAGE_SIZE = 50;

/** `arrivals`: weight per second of new transfers, which only the newest page shows. */
type Setting = { price: number; arrivals: number; arrivalsClamp: Clamp };

/**
 * Chooses, by expected cost, how a wallet's transfers are watched: by its newest page as far as that shows them, by
 * pages narrowed to a status, or one by one. The cost of a request that shows hazard H is what its delay and its price
 * come to, `H/2r + c·r` per second at the best rate `r`; so what shares a page is cheaper than the sum of its parts, and
 * a narrowed page also costs a look-up for each transfer that leaves it. Members are in order, oldest first.
 */
export function planWallet<T extends InFlight>(members: readonly T[], setting: Setting): WalletPlan<T> {
  let groups: { status: string; members: T[] }[] = [];
  for (const member of members) {
    const group = groups.find((candidate) => candidate.status === member.status);
    if (group) group.members.push(member);
    else groups.push({ status: member.status, members: [member] });
  }
  // Beyond the statuses that are usual the number of choices would explode: those go with the newest page, or alone.
  const rest = groups.slice(MOST_GROUPS).flatMap((group) => group.members);
  groups = groups.slice(0, MOST_GROUPS);
  const start: Draft<T> = { head: rest.filter(isOnHead), narrowed: [], exact: rest.filter(isOffHead) };
  let drafts = [start];
  for (const group of groups) drafts = drafts.flatMap((draft) => choices(draft, group));
  let best = { draft: start, cost: Number.POSITIVE_INFINITY };
  for (const draft of drafts) {
    const cost = draftCost(draft, setting);
    if (cost < best.cost) best = { draft, cost };
  }
  const { head, narrowed, exact } = best.draft;
  return { head: head.length > 0 || setting.arrivals > 0 ? head : null, narrowed, exact };
}

const MOST_GROUPS = 4;

type Draft<T> = { head: T[]; narrowed: { status: string; members: T[] }[]; exact: T[] };

function isOnHead(member: InFlight): boolean {
  return member.onHead;
}

function isOffHead(member: InFlight): boolean {
  return !member.onHead;
}

function choices<T extends InFlight>(
  draft: Draft<T>,
  { status, members }: { status: string; members: T[] },
): Draft<T>[] {
  const { head, narrowed, exact } = draft;
  const drafts = [{ head, narrowed, exact: [...exact, ...members] }];
  if (members.some(isOnHead)) {
    drafts.push({
      head: [...head, ...members.filter(isOnHead)],
      narrowed,
      exact: [...exact, ...members.filter(isOffHead)],
    });
  }
  if (members.length > 1 && members.every((member) => member.narrowable)) {
    drafts.push({
      head,
      narrowed: [...narrowed, { status, members: members.slice(-PAGE_SIZE) }],
      exact: [...exact, ...members.slice(0, -PAGE_SIZE)],
    });
  }
  return drafts;
}

function draftCost(draft: Draft<InFlight>, setting: Setting): number {
  const { price, arrivals, arrivalsClamp } = setting;
  let cost = 0;
  if (draft.head.length > 0 || arrivals > 0) {
    const clamps = draft.head.map((member) => member.clamp);
    if (arrivals > 0) clamps.push(arrivalsClamp);
    cost += requestCost({ hazard: arrivals + weighted(draft.head), clamp: tightest(clamps), price });
  }
  for (const { members } of draft.narrowed) {
    const clamp = tightest(members.map((member) => member.clamp));
    const leaving = members.reduce((sum, member) => sum + member.hazard, 0);
    cost += requestCost({ hazard: weighted(members), clamp, price }) + price * leaving;
  }
  for (const member of draft.exact) {
    cost += requestCost({ hazard: member.weight * member.hazard, clamp: member.clamp, price });
  }
  return cost;
}

function weighted(members: readonly InFlight[]): number {
  return members.reduce((sum, member) => sum + member.weight * member.hazard, 0);
}

function requestCost({ hazard, clamp, price }: { hazard: number; clamp: Clamp; price: number }): number {
  const wanted = Math.sqrt(hazard / (2 * price));
  const rate = Math.min(1 / clamp.leastSeconds, Math.max(1 / clamp.mostSeconds, wanted));
  return hazard / (2 * rate) + price * rate;
}
