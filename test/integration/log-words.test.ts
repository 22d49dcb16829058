import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { ShippedDaemon } from '../support/shipped-daemon.ts';

const TOKEN = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl';

/** Statuses that no log line may show, by what of them would give them away. */
const STATUSES = {
  'bob@example.com': /bob/i,
  'refund for carol@example.com, quickly': /carol/i,
  whsec_ABCDEFGHIJKLMNOPQRSTUVWXYZ: /abcdefghij/i,
  sk_live_QWERTYUIOP: /qwertyuiop/i,
  [TOKEN]: /eyJ/i,
  'pass-phrase-77': /phrase/i,
} as const;

test('words of the upstream that are mail addresses or look like secrets are in events, and in no log line', async () => {
  const statuses = new Map(Object.keys(STATUSES).map((status, index) => [hashOf(index + 1), status]));
  const refused = hashOf(100);
  const upstream = new ScriptedUpstream(({ query }) => {
    const hash = query.intentHash ?? '';
    if (hash === refused) {
      const problem = {
        type: 'https://x/errors/internal',
        title: 'ask dave@example.com',
        status: 500,
        code: 'internal',
      };
      const body = JSON.stringify({ ...problem, detail: 'log in with sk_live_ASDFGHJKL' });
      return { status: 500, body, headers: { 'content-type': 'application/problem+json' } };
    }
    return {
      records: [
        intentRecord(hash, statuses.get(hash) ?? 'pending', 1_763_638_259, { 'erin@example.com': 1 }),
      ],
    };
  });
  await upstream.start();
  onTestFinished(() => upstream.close());
  const hook = new Hook();
  await hook.start();
  onTestFinished(() => hook.close());
  const daemon = await ShippedDaemon.of(
    {
      baseUrl: upstream.url,
      receiver: { url: hook.url },
      subscription: { intents: [...statuses.keys(), hashOf(99), refused] },
    },
    onTestFinished,
  );
  await daemon.start();
  await hook.until((came) => came.length >= statuses.size + 1);
  const told = hook.came.map(({ event }) => event.data.status);
  expect(told).toEqual(expect.arrayContaining([...Object.keys(STATUSES), 'pending']));
  const lines = (msg: string): string[] => daemon.said.filter((line) => line.includes(`"msg":"${msg}"`));
  await eventually('all is logged', () => {
    const isEach = ['event.committed', 'delivery.attempted'].every(
      (msg) => lines(msg).length > statuses.size,
    );
    return isEach && lines('poll.failed').length > 0;
  });
  const said = daemon.said.join('\n');
  for (const [status, trace] of Object.entries(STATUSES)) expect(said, status).not.toMatch(trace);
  expect(said).not.toMatch(/dave|erin|ASDFGHJKL/);
  expect(said).toContain('"status":"[address]"');
  expect(said).toContain('"eventType":"intent.[secret]"');
  expect(said).toContain('"eventType":"intent.pending"');
});
