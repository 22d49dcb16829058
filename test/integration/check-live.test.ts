import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { type CannedAnswer, cannedServer } from '../support/canned-server.ts';
import { configYaml, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { freePort } from '../support/port.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { Stage } from '../support/stage.ts';

const open = opening();

const INVALID: CannedAnswer = {
  status: 401,
  body: {
    type: 'about:blank',
    title: 'API key is missing, unknown, or revoked',
    status: 401,
    code: 'invalid-api-key',
  },
};
const GATEWAY: CannedAnswer = { status: 403, body: { Message: 'User is not authorized' } };
const WORKS = {
  status: 200,
  body: { results: [{ id: `intent:0x${'0'.repeat(64)}`, type: 'intent', status: 'unknown' }] },
};

type Checked = { code: number | null; upstream: string; lists: string };

/** Runs `check --live` against an upstream that gives one answer to all requests; null for one that nobody answers for. */
async function check(
  answer: CannedAnswer | null,
  more: { redisUrl?: string; path?: string } = {},
): Promise<Checked> {
  const { redisUrl = inject('redisUrl'), path = '' } = more;
  const stage = new Stage(onTestFinished);
  let baseUrl = `http://127.0.0.1:${await freePort()}`;
  if (answer !== null) {
    const server = await cannedServer(() => answer);
    open.later(() => server.close());
    baseUrl = `${server.url}${path}`;
  }
  const file = join(await stage.folder(), 'intentwatch.yaml');
  const receivers = { hook: { url: 'http://127.0.0.1:1' } };
  const subscriptions = [{ name: 's', intents: [hashOf(1)], receivers: ['hook'] }];
  await writeFile(file, configYaml({ baseUrl, redisUrl, prefix: testPrefix(), receivers, subscriptions }));
  const program = await stage.intentwatch(['check', '--live', '--config', file]);
  const { code } = await program.ending();
  const line = (name: string): string => program.stdout.find((one) => one.includes(`  ${name} `)) ?? '';
  return { code, upstream: line('upstream'), lists: line('chains and tokens') };
}

describe('check --live', () => {
  test.each([
    ['401 invalid-api-key', INVALID, 'the upstream refuses the API key (HTTP 401, invalid-api-key): '],
    ['403 of the gateway', GATEWAY, 'the upstream refuses the request (HTTP 403 without a code): '],
  ])('says in one sentence that a key is refused (%s), and ends with 78', async (_, answer, sentence) => {
    const { code, upstream } = await check(answer);
    expect(code).toBe(78);
    expect(upstream).toMatch(/^FAILED {2}upstream http:\S+ +the upstream refuses/);
    expect(upstream).toContain(sentence);
    expect(upstream).not.toMatch(/[{}]/);
  });

  test('ends with 78 as well where something else cannot be reached', async () => {
    const redisUrl = `redis://127.0.0.1:${await freePort()}`;
    expect((await check(INVALID, { redisUrl })).code).toBe(78);
  });

  test('ends with 75 where nobody answers, or with an error that passes', async () => {
    expect((await check(null)).code).toBe(75);
    expect((await check({ status: 503, body: '' })).code).toBe(75);
  });

  test('ends with 0 where all is well', async () => {
    const { code, upstream, lists } = await check(WORKS);
    expect([code, upstream.startsWith('ok ')]).toEqual([0, true]);
    // Chains that cannot be read are no fault: those that are built in are used.
    expect(lists).toMatch(/^ok .*those that are built in: /);
  });

  test('says what the upstream lists, and what of it cannot be used', async () => {
    const token = { chainId: 8453, address: `0x${'1b'.repeat(20)}`, symbol: 'PUSD', decimals: 6 };
    const entries = [{ chainId: 8453, quoteSigner: '0xabc' }, token, { ...token, decimals: 18 }, 'none'];
    const { lists } = await check({ status: 200, body: { ...WORKS.body, data: entries } });
    expect(lists).toContain('1 chain, 1 with quoteSigner; 1 token; ');
    expect(lists).toContain('that say too little; 1 with other decimals than are known');
  });

  test('prints nothing that moves the cursor of a terminal', async () => {
    const { upstream } = await check({ status: 500, body: '\u001b[2J\u202egone' }, { path: '/\u009b2J' });
    expect(upstream).toContain('FAILED');
    expect(upstream).not.toMatch(/[\p{Cc}\u202e]/u);
  });
});

test('an error on stderr holds no control characters either', async () => {
  const stage = new Stage(onTestFinished);
  const program = await stage.intentwatch(['check', '--config', 'no/such\u001b[2J.yaml']);
  expect((await program.ending()).code).toBe(78);
  expect(program.stderr.join('')).toContain('found no such file');
  expect(program.stderr.join('')).not.toMatch(/\p{Cc}/u);
});
