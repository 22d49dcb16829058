import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { renderScript } from '../../scripts/generate/scripts.ts';
import { scripts } from '../../src/store/scripts.ts';

const COMMANDS = join(import.meta.dirname, '../../src/store/commands');

/** A connection without network: it gives the `answer` to each script, and records what was `sent` and `defined`. */
function connection(answer: unknown): { redis: Redis; sent: string[][]; defined: Map<string, string> } {
  const [redis, sent, defined] = [
    new Redis({ lazyConnect: true }),
    [] as string[][],
    new Map<string, string>(),
  ];
  redis.defineCommand = (name, { lua }) => {
    defined.set(name, lua);
    Reflect.set(redis, name, async (...values: string[]) => {
      sent.push(values);
      return answer;
    });
  };
  for (const script of Object.values(scripts)) script.define(redis);
  return { redis, sent, defined };
}

test('every script is declared, and gets its keys and arguments by position in Redis', async () => {
  const files = (await readdir(COMMANDS)).filter((file) => file.endsWith('.lua'));
  const { defined } = connection(null);
  expect([...defined.keys()].sort()).toEqual(files.map((file) => `iw:${file.replace('.lua', '')}`).sort());
  for (const [name, lua] of defined) expect(lua, name).not.toMatch(/\b(?:KEYS|ARGV)\.|-- @include/);
});

test('keys and arguments are sent in the order of the header, for any order in the call', async () => {
  const { redis, sent } = connection([1, [], ['opened'], '', '', []]);
  const opening = { id: 'e1', entry: '1-0', claimKeys: ['s|a'], isSuspended: false };
  await scripts.openDeliveries(redis, {
    args: {
      deliveries: [
        { ...opening, subject: null },
        { subject: 'b', ...opening, id: 'e2', isSuspended: true },
      ],
      process: 'p',
      receiver: 'r',
      fence: '7',
      from: null,
      cursor: null,
      replay: null,
      deliveryPrefix: 'd:',
      lastPrefix: 'l:',
      replayPrefix: 'y:',
      replaysOfPrefix: 'o:',
      order: null,
      remembered: null,
      tracked: 't',
    },
    keys: {
      ...{ subscriptions: 'k8', wakes: 'k6', senders: 'k7', cursors: 'k5', relayLease: 'k4' },
      ...{ receiver: 'k3', queue: 'k2', pending: 'k1' },
    },
  });
  const flat = ['7', 'r', '', '', 'd:', 'l:', 'y:', '', 'p', 'o:', 't', '', ''];
  const deliveries = ['e1', '1-0', '["s|a"]', '', '', 'e2', '1-0', '["s|a"]', 'b', '1'];
  expect(sent).toEqual([['k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7', 'k8', ...flat, ...deliveries]]);
});

test('a list is counted and read from its own first place, a list of records by the names of its fields', () => {
  const { defined } = connection(null);
  expect(defined.get('iw:advance-2')).toContain(
    'for index = 1, (#ARGV - 3) do\n  local name = ARGV[index + 3]',
  );
  expect(defined.get('iw:postpone-check-1')).toContain(
    "for index = 1, ((#ARGV - 6) / 2) do redis.call('HSET', key, ARGV[index * 2 + 5], ARGV[index * 2 + 6]) end",
  );
  expect(defined.get('iw:return-entry-2')).toContain("'*', unpack({ unpack(ARGV, 2) })");
});

test('a reply is parsed by the names of the header', async () => {
  const keys = { plan: 'a', endpointGroup: 'b' };
  const args = { process: 'p', most: 3, aheadMs: 5, atMs: null, sent: [], kinds: [] };
  const { redis } = connection(['-1.000', ['m', '7', '12.5', 'n', '8', '0'], [], 2, ['6']]);
  expect(await scripts.claimPolls(redis, { keys, args })).toEqual({
    waitMs: -1,
    polls: [
      { member: 'm', token: '7', inMs: 12.5 },
      { member: 'n', token: '8', inMs: 0 },
    ],
    crashed: [],
    returned: 2,
    arrived: ['6'],
  });
});

test.each([
  ['nothing', [], null],
  ['all of it', ['lost', '2', 'a', 'b'], { reason: 'lost', count: 2, deliveries: ['a', 'b'] }],
])('a reply with %s of a list that may be empty is parsed', async (_name, answer, expected) => {
  const keys = { receiver: 'a', dropped: 'b', events: 'c' };
  const { redis } = connection(answer);
  const args = { subject: 's', isFurther: false, reasons: [] };
  expect(await scripts.reportDropped(redis, { keys, args })).toEqual(expected);
});

test.each([
  ['an unknown value', 'other'],
  ['a number for a text', 1],
  ['nothing', null],
])('a reply with %s is refused', async (_name, answer) => {
  const args = { consumer: 'c', log: 'l', entry: '1-0', most: 1 };
  const { redis } = connection(answer);
  await expect(scripts.acknowledge(redis, { keys: { consumers: 'k' }, args })).rejects.toThrow();
});

test.each([
  ['', false],
  ['0', false],
  [0, false],
  ['1', true],
  [1, true],
])('the reply %j is the flag %j', async (answer, expected) => {
  const { redis } = connection(answer);
  expect(
    await scripts.acquireSweepTurn(redis, {
      keys: { sweepTurns: 'k' },
      args: { member: 'm', turnMs: 1, most: 1 },
    }),
  ).toBe(expected);
});

test('the compiler refuses names and kinds that the header does not have', () => {
  const { redis } = connection(1);
  const args = { member: 'm', turnMs: 1, most: 1 };
  const keys = { sweepTurns: 'k' };
  const calls = [
    // @ts-expect-error a key is missing
    () => scripts.acquireSweepTurn(redis, { keys: {}, args }),
    // @ts-expect-error a key has another name
    () => scripts.acquireSweepTurn(redis, { keys: { turns: 'k' }, args }),
    // @ts-expect-error an argument is missing
    () => scripts.acquireSweepTurn(redis, { keys, args: { member: 'm', turnMs: 1 } }),
    // @ts-expect-error an argument is of another kind
    () => scripts.acquireSweepTurn(redis, { keys, args: { ...args, most: '1' } }),
    // @ts-expect-error an argument is not declared
    () => scripts.acquireSweepTurn(redis, { keys, args: { member: 'm', turnMs: 1, most: 1, more: 1 } }),
    // @ts-expect-error an argument that must not be null
    () => scripts.acquireSweepTurn(redis, { keys, args: { ...args, member: null } }),
  ];
  expect(calls).toHaveLength(6);
});

const HEADER = `--[[
  Does something.

  KEYS
    one  hash

  ARGV
    text  text    what is
              given
    list  ...text

  returns flag
]]
`;

test.each([
  ['a key that is not declared', 'return KEYS.two', 'KEYS.two is not declared'],
  [
    'an argument that is not declared',
    'return ARGV.text .. ARGV.list[1] .. ARGV.other',
    'ARGV.other is not declared',
  ],
  ['an argument that is not used', 'return ARGV.text', 'ARGV.list is not declared, or not used'],
  [
    'an argument by position',
    'return ARGV.text .. ARGV.list[1] .. ARGV[2]',
    'ARGV is in its body without a name',
  ],
])('a script with %s is refused', (_name, body, problem) => {
  expect(() => renderScript('do-it-1.lua', `${HEADER}${body}\n`)).toThrow(problem);
});

test('a script whose name has another number of keys than its header is refused', () => {
  expect(() => renderScript('do-it-2.lua', `${HEADER}return ARGV.text .. ARGV.list[1]\n`)).toThrow(
    'its name ends with the number of KEYS, 1',
  );
  expect(renderScript('do-it-1.lua', `${HEADER}return ARGV.text .. ARGV.list[1]\n`)).toContain(
    'args: { text: arg.text, list: arg.list(arg.text) }',
  );
});
