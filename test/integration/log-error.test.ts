import fc from 'fast-check';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { expect, inject, onTestFinished, test } from 'vitest';
import { LOG_OPTIONS, loggedError } from '../../src/log.ts';

async function logged(run: (redis: Redis) => Promise<unknown>): Promise<string> {
  const redis = new Redis(inject('redisUrl'));
  onTestFinished(() => redis.disconnect());
  const error: unknown = await run(redis).catch((reason: unknown) => reason);
  if (!(error instanceof Error)) throw new Error('expected Redis to refuse the command');
  const lines: string[] = [];
  const log = pino(
    { base: null, serializers: { error: loggedError } },
    { write: (line) => lines.push(line) },
  );
  log.error({ error }, 'poll.failed');
  return lines.join('');
}

test('an error of a script is logged without the script and its arguments', async () => {
  const message = await logged((redis) =>
    redis.eval(
      'local hidden = 1; return redis.call("GET", KEYS[1], "x", ARGV[1])',
      1,
      'hidden-key',
      'hidden-argument',
    ),
  );
  expect(message).toContain('"command":"eval"');
  expect(message).toContain('Wrong number of args');
  expect(message).not.toContain('hidden');
});

test('an error that quotes the arguments is logged without them', async () => {
  const message = await logged((redis) => redis.call('NOSUCHCOMMAND', 'hidden-1', 'hidden-2'));
  expect(message).toContain("unknown command 'NOSUCHCOMMAND'");
  expect(message).not.toContain('hidden');
});

test('an error that quotes the upstream is logged without mail addresses and secrets', () => {
  const lines: string[] = [];
  const log = pino(LOG_OPTIONS, { write: (line) => lines.push(line) });
  log.error({ error: new Error('found dave@example.com with sk_live_ASDFGHJKL') }, 'poll.error');
  const message = lines.join('');
  expect(message).toContain('found [address] with [secret]');
  expect(message).not.toMatch(/dave|ASDFGHJKL/);
});

test('no member of a log line shows mail addresses and secrets, however deep it is, and no name of one', () => {
  const places = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(
        'mail dave@example.com',
        'key=sk_live_ASDFGHJKL',
        '<whsec_ASDFGHJKL>',
        '(sk_live_ASDFGHJKL)',
        '`xoxb-ASDFGHJKL`',
        'a?b&[eyJASDFGHJKL.e30]',
      ),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'dave@example.com', 'sk_live_ASDFGHJKL'), tie('value'), {
        maxKeys: 3,
      }),
    ),
  })).value;
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('detail', 'title', 'support', 'reason'), places), (members) => {
      const lines: string[] = [];
      pino(LOG_OPTIONS, { write: (line) => lines.push(line) }).warn(members, 'poll.failed');
      expect(lines.join('')).not.toMatch(/dave|ASDFGHJKL/);
    }),
  );
});
