import { writeFile } from 'node:fs/promises';
import { chance, integer, pick } from '../../sandbox/world/random.ts';
import { DAY, HOUR, type Life, MINUTE, SECOND, type Seat } from './life.ts';
import type { VirtualConfig } from './virtual-config.ts';

/** An act in a life, and its weight: 0 where only a life that names its acts has it. */
export type Act = { weight: number; act: (life: Life) => Promise<void> };

export const ACTS: Readonly<Record<string, Act>> = {
  'let time pass': { weight: 6, act: (life) => life.pass(life.someSpan(), 2) },
  'rename a subscription': { weight: 4, act: edit((config, { random }) => config.rename(random)) },
  'move an item': { weight: 4, act: edit((config, { random }) => config.move(random)) },
  'take an item out': { weight: 4, act: edit((config, { random }) => config.takeOut(random)) },
  'put one back': { weight: 4, act: edit((config, { random }) => putOne(config, random)) },
  'put all back': { weight: 2, act: edit((config, { random }) => config.put(config.out, random)) },
  'give a subscription other receivers': {
    weight: 3,
    act: edit((config, { random }) => config.reassign(random)),
  },
  'take a receiver out, or put it back': {
    weight: 2,
    act: edit((config, { random }) => config.turnReceiver(random)),
  },
  'change the settings': {
    weight: 1,
    act: edit(({ settings }, { random }) => {
      settings.graceSpan = pick(random, ['0s', '1h', '24h', '24h']);
      settings.mode = chance(random, 0.3) ? 'manual' : 'watch';
      settings.closeAfter = pick(random, ['10m', '1h', '6h']);
    }),
  },
  'add the endpoints of a chain, or leave them out': {
    weight: 1,
    act: edit(({ settings }) => {
      settings.rpc = !settings.rpc;
    }),
  },
  'remove what is suspended': { weight: 2, act: removeSuspended },
  'reload by hand': { weight: 3, act: reloadByHand },
  'truncate the file': { weight: 2, act: truncate },
  'half-write the file': { weight: 2, act: halfWrite },
  restart: { weight: 2, act: restart },
  'kill -9 at work': { weight: 4, act: killAtWork },
  'kill -9 while it starts': { weight: 2, act: killAtStart },
  'kill -9 while it reloads': { weight: 3, act: killAtReload },
  'stop for hours': { weight: 1, act: stopForHours },
  'start a second process with another file': { weight: 2, act: secondProcess },
  'the clock jumps': { weight: 2, act: jumpClock },
  'the clocks of the processes and of Redis are apart': { weight: 1, act: partClocks },
  'one response has another time': { weight: 1, act: otherDate },
  'stop for longer than the retention': { weight: 1, act: stopForLong },
  'copy Redis': { weight: 2, act: (life) => life.save() },
  'restore Redis under the processes': { weight: 2, act: restore },
  'restore Redis while nobody runs': { weight: 1, act: restoreStopped },
  'promote a replica that was behind': { weight: 2, act: promoteReplica },
  'cursors live otherwise': { weight: 1, act: changeCursors },
  'pages come in another order': { weight: 1, act: changeOrder },
  'a receiver fails for a while': { weight: 2, act: failReceiver },
  'the upstream is away for a while': { weight: 1, act: upstreamAway },
  'kill -9 at work, and start with all items under new names': { weight: 0, act: killBeforeSplit },
  'the upstream is away for longer than the retention': { weight: 0, act: upstreamAwayForLong },
  'the clock jumps twice': { weight: 0, act: jumpTwice },
  'a wallet begins at a response with another time': { weight: 0, act: beginAtOtherDate },
};

function dyingOf({ random }: Life, most: number): { commands: number; isLastMade: boolean } {
  return { commands: integer(random, most), isLastMade: chance(random, 0.5) };
}

/** An edit of a file: the upstream has changed before, sometimes unseen; the process finds the edit by itself. */
function edit(change: (config: VirtualConfig, life: Life) => void): (life: Life) => Promise<void> {
  return async (life) => {
    const seat = pick(life.random, life.seats);
    change(seat.config, life);
    await life.write(seat);
    if (chance(life.random, 0.7)) life.stir();
    await life.reread(seat, 'noticed');
    if (chance(life.random, 0.7)) life.stir();
    await life.pass(chance(life.random, 0.7) ? 10 * SECOND : life.someSpan(), 1);
  };
}

function putOne(config: VirtualConfig, random: Life['random']): void {
  const { out } = config;
  if (out.length > 0) config.put([pick(random, out)], random);
}

async function reloadByHand(life: Life): Promise<void> {
  const seat = pick(life.random, life.seats);
  life.stir();
  await life.reread(seat, 'requested');
  await life.pass(10 * SECOND, 1);
}

/** Nearly all is removed for a while: the reload is held, and sometimes confirmed. The removal may be undone. */
async function truncate(life: Life): Promise<void> {
  const { random } = life;
  const seat = pick(random, life.seats);
  const before = seat.config;
  seat.config = before.copy();
  seat.config.truncate(random);
  await life.write(seat);
  life.stir();
  await life.reread(seat, chance(random, 0.5) ? 'noticed' : 'requested');
  await life.pass(life.someSpan(), 1);
  if (chance(random, 0.6)) {
    await life.confirm(seat);
    await life.pass(life.someSpan(), 2);
  }
  if (chance(random, 0.2)) return;
  seat.config = before;
  await life.write(seat);
  life.stir();
  await life.reread(seat, 'noticed');
  await life.pass(MINUTE, 1);
}

/** Half of the file is there for a while; no process accepts it. */
async function halfWrite(life: Life): Promise<void> {
  const { random } = life;
  const seat = pick(random, life.seats);
  const whole = seat.config.text(random, `${seat.folder}/data`);
  await writeFile(life.fileOf(seat), whole.slice(0, whole.indexOf('receivers:') + integer(random, 20)));
  await seat.process?.check();
  const state = seat.process?.fileState?.state;
  if (state === 'running' && seat.running?.settings.mode === 'watch')
    life.problems.push('half a file was applied');
  await life.pass(MINUTE, 1);
  await life.write(seat);
  await life.reread(seat, 'noticed');
  await life.pass(10 * SECOND, 1);
}

async function restart(life: Life): Promise<void> {
  await life.end(life.main, chance(life.random, 0.5) ? 'close' : 'kill');
  life.stir();
  await life.start(life.main);
  await life.pass(10 * SECOND, 1);
}

async function killAtWork(life: Life): Promise<void> {
  life.stir();
  await life.pass(30 * SECOND, 1, dyingOf(life, 400));
  await life.pass(10 * SECOND, 1);
}

/** The items go to new subscriptions; the old ones stay, with one item and other receivers. */
async function killBeforeSplit(life: Life): Promise<void> {
  const { main, random, upstream } = life;
  main.config.split(random);
  await life.write(main);
  for (const item of main.config.wants.items)
    if (item.startsWith('wallet:')) upstream.bear({ wallet: item.slice('wallet:'.length) });
  await life.pass(30 * SECOND, 1, dyingOf(life, 400));
  await life.reread(main, 'requested');
  await life.confirm(main);
  await life.pass(10 * SECOND, 1);
}

async function killAtStart(life: Life): Promise<void> {
  await life.end(life.main, 'kill');
  somehow(life.main, life);
  await life.write(life.main);
  life.stir();
  await life.start(life.main, dyingOf(life, 150));
  await life.pass(10 * SECOND, 1);
}

async function killAtReload(life: Life): Promise<void> {
  const seat = pick(life.random, life.seats);
  somehow(seat, life);
  await life.write(seat);
  life.stir();
  await life.reread(seat, 'requested', dyingOf(life, 120));
  await life.pass(10 * SECOND, 1);
}

function somehow({ config }: Seat, { random }: Life): void {
  const how = integer(random, 4);
  if (how === 0) config.rename(random);
  else if (how === 1) config.move(random);
  else if (how === 2) config.takeOut(random);
  else config.put(config.out, random);
}

async function stopForHours(life: Life): Promise<void> {
  for (const seat of life.seats) await life.end(seat, 'close');
  for (let hours = integer(life.random, 40); hours > 0; hours -= 8) {
    life.stir();
    life.time.advance(8 * HOUR);
  }
  for (const seat of life.seats) await life.start(seat);
  await life.pass(MINUTE, 1);
}

/** A second process has another file for a while: the last applied config is the newest. */
async function secondProcess(life: Life): Promise<void> {
  const { random, seats } = life;
  const [, second] = seats;
  if (second !== undefined) {
    seats.pop();
    await life.end(second, chance(random, 0.5) ? 'close' : 'kill');
    await life.pass(MINUTE, 1);
    return;
  }
  const config = life.main.config.copy();
  for (let changes = integer(random, 3); changes > 0; changes -= 1) config.takeOut(random);
  if (chance(random, 0.5)) config.rename(random);
  await life.seat('two', config);
  await life.pass(life.someSpan(), 2);
}

async function restore(life: Life): Promise<void> {
  if (life.saved === null) return life.save();
  life.stir();
  await life.restore();
  await life.pass(30 * SECOND, 2);
}

async function restoreStopped(life: Life): Promise<void> {
  if (life.saved === null) return life.save();
  for (const seat of life.seats) await life.end(seat, chance(life.random, 0.5) ? 'close' : 'kill');
  life.stir();
  await life.restore();
  for (const seat of life.seats) await life.start(seat);
  await life.pass(30 * SECOND, 2);
}

/** Some seconds of writes are lost: a config may be among them. */
async function promoteReplica(life: Life): Promise<void> {
  const { random } = life;
  const before = life.saved;
  await life.save();
  if (chance(random, 0.5)) {
    somehow(life.main, life);
    await life.write(life.main);
    await life.reread(life.main, 'requested');
  }
  await life.pass(5 * SECOND, 1);
  await life.restore();
  life.saved = before;
  await life.pass(30 * SECOND, 2);
}

async function changeCursors({ random, upstream }: Life): Promise<void> {
  const cursorMs = pick(random, [5 * SECOND, 30 * SECOND, HOUR, DAY, Number.POSITIVE_INFINITY]);
  upstream.listing = { ...upstream.listing, cursorMs };
}

async function changeOrder({ random, upstream }: Life): Promise<void> {
  upstream.listing = { ...upstream.listing, order: pick(random, ['newest', 'oldest', 'mixed']) };
}

async function failReceiver(life: Life): Promise<void> {
  const hook = pick(life.random, [...life.hooks.values()]);
  const { answer } = hook;
  hook.answer = () => 500;
  await life.pass(life.someSpan(), 2);
  hook.answer = answer;
  await life.pass(MINUTE, 1);
}

async function upstreamAway(life: Life): Promise<void> {
  life.upstream.isAway = true;
  await life.pass(MINUTE, 2);
  life.upstream.isAway = false;
  await life.pass(10 * MINUTE, 2);
}

/** Ended transfers are compact when the upstream is back, and shows them again. */
async function upstreamAwayForLong(life: Life): Promise<void> {
  life.upstream.isAway = true;
  await life.pass(32 * DAY, 8);
  life.upstream.isAway = false;
  await life.pass(HOUR, 4);
}

async function jumpClock(life: Life): Promise<void> {
  const { random } = life;
  life.stir();
  const offMs = pick(random, [31 * DAY, HOUR, 6 * HOUR, -HOUR, -6 * HOUR]);
  life.time.setOff({ processes: offMs, redis: offMs });
  await life.pass(pick(random, [12 * SECOND, MINUTE]), 2);
  life.time.setOff({ processes: 0, redis: 0 });
  life.disturb();
  await life.pass(MINUTE, 2);
}

/** The second jump comes near the end of the hour for which the first is held. */
async function jumpTwice(life: Life): Promise<void> {
  life.stir();
  life.time.setOff({ processes: HOUR, redis: HOUR });
  await life.pass(50 * MINUTE, 5);
  life.time.setOff({ processes: 31 * DAY, redis: 31 * DAY });
  await life.pass(20 * MINUTE, 4);
  life.time.setOff({ processes: 0, redis: 0 });
  life.disturb();
  await life.pass(MINUTE, 2);
}

async function partClocks(life: Life): Promise<void> {
  const { random } = life;
  life.stir();
  const offMs = pick(random, [31 * DAY, HOUR, -HOUR]);
  life.time.setOff(chance(random, 0.5) ? { processes: offMs, redis: 0 } : { processes: 0, redis: offMs });
  await life.pass(pick(random, [12 * SECOND, 10 * MINUTE]), 3);
  life.time.setOff({ processes: 0, redis: 0 });
  life.disturb();
  await life.pass(MINUTE, 2);
}

/** An operator ends all suspended items at once, through any process. */
async function removeSuspended(life: Life): Promise<void> {
  const { random, model, seats } = life;
  const { suspended } = model;
  const { process } = pick(random, seats);
  if (suspended.length === 0 || process === null) return;
  const item = pick(random, suspended);
  life.stir();
  if (await process.remove(item)) model.remove(item, life.time.nowMs);
  else life.problems.push(`${item} is not suspended`);
  await life.pass(10 * SECOND, 1);
}

async function otherDate({ random, upstream }: Life): Promise<void> {
  upstream.dateOffMs = [pick(random, [6 * HOUR, -6 * HOUR]), 0];
}

/** All is removed but one item, then a wallet is put back. The first responses about it have another time. */
async function beginAtOtherDate(life: Life): Promise<void> {
  const { main, random, upstream } = life;
  const before = main.config;
  const isWallet = (item: string): boolean => item.startsWith('wallet:');
  const [stays, ...others] = [...before.wants.items].sort((item) => (isWallet(item) ? 1 : -1));
  const wallet = others.find(isWallet);
  if (stays === undefined || wallet === undefined) return;
  main.config = before.copy();
  main.config.settings.graceSpan = '0s';
  main.config.leave(others);
  await life.write(main);
  await life.reread(main, 'requested');
  await life.confirm(main);
  await life.pass(HOUR, 2);
  main.config = main.config.copy();
  main.config.put([wallet], random);
  await life.write(main);
  await life.reread(main, 'requested');
  upstream.bear({ wallet: wallet.slice('wallet:'.length) });
  const offMs = pick(random, [6 * HOUR, -6 * HOUR]);
  upstream.dateOffMs = [offMs, offMs, 0];
  await life.pass(MINUTE, 2);
  main.config = before;
  await life.write(main);
  await life.reread(main, 'requested');
  await life.pass(MINUTE, 1);
}

/** No process runs for longer than the retention. */
async function stopForLong(life: Life): Promise<void> {
  for (const seat of life.seats) await life.end(seat, 'close');
  life.stir();
  life.time.advance(31 * DAY);
  for (const seat of life.seats) await life.start(seat);
  await life.pass(MINUTE, 2);
}
