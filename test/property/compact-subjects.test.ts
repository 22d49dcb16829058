import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { asSubjectId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EndedSubjects } from '../../src/store/ended-subjects.ts';
import { Keys } from '../../src/store/keys.ts';
import { scripts } from '../../src/store/scripts.ts';
import { testPrefix } from '../support/daemon.ts';

const DAY_MS = 86_400_000;
const START_MS = 1_700_000_000_000;
const CLAIM = `treasury|wallet:0x${'ab'.repeat(20)}`;

const hex = (digits: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: digits, maxLength: digits });

/** Texts around each rule of the short form: runs of digits that are a byte too long, in capitals, or behind a mark. */
const HEX_TEXT = fc.oneof(
  hex(40),
  hex(64),
  hex(41),
  hex(40).map((digits) => digits.toUpperCase()),
  hex(64).map((digits) => `${digits}|0x${digits.slice(24)}`),
  fc.tuple(fc.nat({ max: 9 }), fc.string()).map(([mark, text]) => `${String.fromCharCode(mark + 1)}${text}`),
);

const SUBJECT = fc
  .tuple(fc.constantFrom('intent:0x', 'deposit-address:0x', 'swap:0x', 'intent:'), HEX_TEXT)
  .map(([head, text]) => asSubjectId(`${head}${text}`));

/** Numbers that a double holds and others, as texts, beside texts that only resemble numbers. */
const VALUE = fc.oneof(
  fc.nat().map(String),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  fc.constantFrom('settled', '-0', '007', '1e3', 'inf', 'nan', '0x10', '9007199254740993', '1.5', ' 1'),
  fc.string({ minLength: 1, unit: 'binary' }),
);

const MARK = hex(6);

/** Marks of events, and texts that resemble them. */
const EMITTED = fc.oneof(
  fc.array(MARK, { minLength: 1, maxLength: 5 }).map((marks) => marks.join(' ')),
  fc
    .tuple(MARK, fc.constantFrom('', ' ', 'a', '  abcdef', ' ABCDEF', ' \u0007'))
    .map((pair) => pair.join('')),
  VALUE,
);

const FIELDS = fc
  .tuple(
    fc.dictionary(
      fc.constantFrom('sequence', 'status', 'updatedAt', 'pendingSince', 'flags', 'epoch', 'commit'),
      VALUE,
    ),
    fc.option(EMITTED, { nil: undefined }),
  )
  .map(([fields, emitted]) => (emitted === undefined ? fields : { ...fields, emitted }));

const OTHER_FIELDS = fc.oneof(
  { weight: 5, arbitrary: fc.constant({}) },
  fc.constantFrom({ eventId: '' }, { eventId: 'evt_1' }, { unconfirmed: '1|settled' }),
);

const CLAIM_VALUE = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.nat(), fc.constantFrom('', '1700000000', '-5', '-', '007', '9007199254740993'))
      .map((pair) => `${pair.join(':')}:1`),
  },
  fc.constantFrom('1700000000000::0', '007::1', 'foreign', `${2n ** 60n}::1`),
);

const CLAIMS = fc.dictionary(
  fc
    .tuple(fc.constantFrom('a|wallet:0x', 'desk>r|wallet:0x', 'orders|quote:', '~|intent:0x'), HEX_TEXT)
    .map((pair) => pair.join('')),
  CLAIM_VALUE,
  { maxKeys: 4 },
);

let redis: RedisClient;

beforeAll(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
});

afterAll(async () => disconnect(redis));

async function stored(keys: Keys, subject: SubjectId): Promise<unknown> {
  return scripts.readSubjects(redis, {
    keys: { plan: keys.planOf(subject) },
    args: {
      subjectPrefix: keys.subject(''),
      claimsPrefix: keys.claims(''),
      areShown: false,
      isWhole: true,
      promised: keys.promised,
      subjects: [subject],
    },
  });
}

test('a compact subject is read and restored as it was, where it is packed and where it is not', async () => {
  let packed = 0;
  const state = fc.record({ subject: SUBJECT, fields: FIELDS, others: OTHER_FIELDS, claims: CLAIMS });
  await fc.assert(
    fc.asyncProperty(state, async ({ subject, fields, others, claims }) => {
      const keys = new Keys(testPrefix());
      const compact = { ...fields, ...others, compact: '1', shownAtMs: String(START_MS) };
      const all = { ...claims, [CLAIM]: `${START_MS - DAY_MS}::1` };
      await redis.hset(keys.subject(subject), compact);
      await redis.hset(keys.claims(subject), all);
      await redis.hset(keys.wanted, CLAIM, START_MS - DAY_MS);
      await redis.zadd(keys.ended, START_MS, subject);
      const before = await stored(keys, subject);
      const ended = new EndedSubjects(redis, keys);
      await ended.compact({
        confirmedMs: START_MS + 31 * DAY_MS,
        retentionMs: 30 * DAY_MS,
        loggedFromMs: Number.POSITIVE_INFINITY,
      });
      packed += await redis.hlen(keys.compact);
      expect(await stored(keys, subject)).toEqual(before);
      await scripts.claim(redis, {
        keys: {
          claims: keys.claims(subject),
          plan: keys.planOf(subject),
          subject: keys.subject(subject),
          wanted: keys.wanted,
        },
        args: { subject, claims: [], atMs: null },
      });
      expect(await redis.hgetall(keys.subject(subject))).toEqual(compact);
      expect(await redis.hgetall(keys.claims(subject))).toEqual(all);
      expect(await redis.hlen(keys.compact)).toBe(0);
      // Held subjects are due again a day later, from either form.
      expect(await redis.zscore(keys.ended, subject)).toBe(String(START_MS + 2 * DAY_MS));
    }),
    { numRuns: 300 },
  );
  expect(packed).toBeGreaterThan(50);
});

test('an id of any length is shortened in linear time', async () => {
  const keys = new Keys(testPrefix());
  // The upstream sends ids of any length that a body may have.
  expect(await stored(keys, asSubjectId(`deposit-address:${'a'.repeat(100_000)}`))).toHaveLength(1);
});

test.each([
  ['no value', "''"],
  ['a text in place of a time', "cmsgpack.pack(1, 2, 'x')"],
  ['a list in place of a text', 'cmsgpack.pack(1, 2, false, true, 1, {})'],
  ['a claim without its start', "cmsgpack.pack(1, 2, false, true, 1, 's', 1, 1, '', '', 1, 1, 'a|wallet:b')"],
])('a compact subject of %s counts as reported, and stops no other', async (_, packed) => {
  const keys = new Keys(testPrefix());
  const subject = asSubjectId('intent:1');
  await redis.eval(`redis.call('HSET', KEYS[1], ARGV[1], ${packed})`, 1, keys.compact, subject);
  const [read] = (await stored(keys, subject)) as { snapshot: object; claims: object }[];
  expect(read).toMatchObject({ snapshot: { compact: '1', eventId: '' }, claims: {} });
});

test('a foreign member among the ended subjects stops the move of no other', async () => {
  const keys = new Keys(testPrefix());
  await redis.hset(keys.compact, 'foreign', 'text');
  await redis.zadd(keys.ended, 1, 'foreign', 2, 'intent:1');
  await new EndedSubjects(redis, keys).compact({
    confirmedMs: START_MS,
    retentionMs: DAY_MS,
    loggedFromMs: Number.POSITIVE_INFINITY,
  });
  expect(await redis.zrange(keys.ended, '0', '-1')).not.toContain('intent:1');
});
