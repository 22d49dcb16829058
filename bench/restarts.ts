import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { eventually } from '../test/support/eventually.ts';
import { type Account, account } from './deliveries/account.ts';
import { COUNT } from './deliveries/sides.ts';
import { type Run, Stage, webhook } from './deliveries/stage.ts';
import { printTargets, type Target } from './detection/targets.ts';

const OPTIONS = {
  rounds: { type: 'string', default: '2' },
  kills: { type: 'string', default: '4' },
  seconds: { type: 'string', default: '20' },
  only: { type: 'string', default: '' },
} as const;

const WALLETS = 40;
const REQUESTS_PER_SECOND = 80;
const WARM_SECONDS = 4;
const LONGEST_MS = 600_000;

/** Time in which a repeated event would come. */
const AFTER_MS = 3_000;

/** A load, its target and the goal beyond, ms. A receiver that takes 300 ms needs 15 attempts at once for 50 events a second. */
type Case = {
  name: string;
  perSecond: number;
  delayMs: number;
  concurrency: number;
  most: number;
  goal: number;
};

const CASES: readonly Case[] = [
  { name: '100 changes/s', perSecond: 100, delayMs: 0, concurrency: 5, most: 3_000, goal: 1_500 },
  {
    name: '50/s, a receiver that takes 300 ms',
    perSecond: 50,
    delayMs: 300,
    concurrency: 50,
    most: 3_500,
    goal: 2_000,
  },
];

/** A round. `again`: requests under an id that had come before; `twice` of the account: changes with several ids. */
type Round = Account & { again: number };

/**
 * Kills the shipped daemon several times under load, and starts it again at once each time. Measures the longest time from an
 * answer of the upstream to the receiver's request, beside the same without kills in the same run. Every change is accounted
 * for; a request that was under way at a kill may come again, under its id.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size = { kills: COUNT.parse(values.kills), seconds: COUNT.parse(values.seconds) };
  const only = new RegExp(values.only);
  const targets: Target[] = [];
  for (const one of CASES.filter(({ name }) => only.test(name))) {
    const [undisturbed, killed]: [Round[], Round[]] = [[], []];
    for (let round = 1; round <= COUNT.parse(values.rounds); round += 1) {
      for (const [rounds, kills] of [[undisturbed, 0] as const, [killed, size.kills] as const]) {
        const found = await measure(one, { ...size, kills });
        rounds.push(found);
        console.log(`round ${round}, ${one.name}, ${kills} kills: ${textOf(found)}`);
      }
    }
    targets.push(...targetsOf(one, { undisturbed, killed, kills: size.kills }));
  }
  return printTargets(targets) ? 0 : 1;
}

async function measure(
  { perSecond, delayMs, concurrency }: Case,
  { kills, seconds }: { kills: number; seconds: number },
): Promise<Round> {
  return Stage.use(async (stage) => {
    const receiver = { ...webhook(stage.receiver), concurrency };
    const wallets = Array.from({ length: WALLETS }, (_, at) => at);
    const daemon: Run = {
      wallets: WALLETS,
      requestsPerSecond: REQUESTS_PER_SECOND,
      routes: [{ name: 'backend', wallets, receiver }],
    };
    await stage.receiver.number(`/delay?ms=${delayMs}`);
    await stage.start(daemon);
    await stage.polled(2, WALLETS);
    await stage.pace(perSecond);
    await wait(WARM_SECONDS * 1_000);
    const from = await stage.pace(perSecond);
    const begunMs = performance.now();
    const until = (ms: number): Promise<unknown> => wait(Math.max(0, begunMs + ms - performance.now()));
    for (let kill = 1; kill <= kills; kill += 1) {
      await until((kill * seconds * 1_000) / (kills + 1));
      await stage.stop('SIGKILL');
      await stage.start(daemon);
    }
    await until(seconds * 1_000);
    const to = await stage.pace(0);
    const subjects = async (): Promise<number> =>
      new Set((await stage.came()).map(([, , subject]) => subject)).size;
    await eventually(`${to} changes have come`, async () => (await subjects()) >= to, LONGEST_MS);
    await wait(AFTER_MS);
    const [shown, came] = await Promise.all([stage.shown(), stage.came()]);
    const first = came.filter(([id], at) => came.findIndex(([other]) => other === id) === at);
    return { ...account({ shown, came: first, from, to }), again: came.length - first.length };
  });
}

const longest = ({ delaysMs }: Round): number => Math.max(0, ...delaysMs);

function textOf(found: Round): string {
  const { delaysMs, lost, twice, again } = found;
  return `${delaysMs.length} changes, longest ${longest(found).toFixed(0)} ms, lost ${lost}, twice ${twice}, sent again ${again}`;
}

function targetsOf(
  { name, concurrency, most, goal }: Case,
  { undisturbed, killed, kills }: { undisturbed: readonly Round[]; killed: readonly Round[]; kills: number },
): Target[] {
  const worst = (rounds: readonly Round[], pick: (round: Round) => number): number =>
    Math.max(...rounds.map(pick));
  const all = [...undisturbed, ...killed];
  return [
    {
      what: `${name}: longest ms from answer to receiver, with kills`,
      found: worst(killed, longest),
      most,
      goal,
      baseline: worst(undisturbed, longest),
    },
    { what: `${name}: lost`, found: worst(all, ({ lost }) => lost), most: 0 },
    { what: `${name}: reported twice`, found: worst(all, ({ twice }) => twice), most: 0 },
    { what: `${name}: sent again without kills`, found: worst(undisturbed, ({ again }) => again), most: 0 },
    {
      what: `${name}: sent again with kills`,
      found: worst(killed, ({ again }) => again),
      most: kills * concurrency,
    },
  ];
}
