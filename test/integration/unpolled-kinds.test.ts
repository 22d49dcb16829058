import { inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';

const WALLET = '0x1111111111111111111111111111111111111111';
const T = Math.floor(Date.now() / 1_000) - 1_000;

// A deposit address has no polls of its own: nothing but pages can confirm that it has gone back.
test('a record that only pages show is reported when it has gone back for as long as polls would confirm it', async ({
  expect,
  onTestFinished,
}) => {
  const shown = new Map<string, JsonObject>();
  const upstream = new ScriptedUpstream(({ query }) => ({
    records: [...shown.values()].filter(({ status }) => [undefined, status].includes(query.status)),
  }));
  const show = (id: string, status: string, updatedAt: number): void =>
    void shown.set(id, { id, type: 'deposit-address', status, updatedAt });
  const [back, wrong] = ['deposit-address:0xabc', 'deposit-address:0xdef'];
  const hook = new TestReceiver();
  await Promise.all([upstream.start(), hook.start()]);
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url, more: { ordering: 'subject' } } },
    subscriptions: [{ name: 's', wallets: [WALLET], receivers: ['hook'], history: 'emit' }],
    more: { polling: { confirmAfter: '2s' } },
  });
  onTestFinished(async () => {
    await daemon.close();
    await Promise.all([upstream.close(), hook.close()]);
  });
  const reported = (subject: string): string[] =>
    hook.events
      .filter(({ data }) => data.subject.id === subject)
      .map(({ data: { status, regression } }) => `${status}${regression ? ' again' : ''}`);
  const untilReported = async (subject: string, expected: readonly string[]): Promise<void> => {
    await eventually(`${subject}: ${expected.join(', ')}`, () => reported(subject).length >= expected.length);
    expect(reported(subject)).toEqual(expected);
  };
  show(back, 'pending', T);
  // One answer with a time far ahead must not silence it for ever.
  show(wrong, 'pending', 90_000_000_000);
  await untilReported(back, ['pending']);
  await untilReported(wrong, ['pending']);
  show(back, 'filled', T);
  await untilReported(back, ['pending', 'filled']);
  show(back, 'pending', T);
  show(wrong, 'filled', T + 10);
  await untilReported(back, ['pending', 'filled', 'pending again']);
  await untilReported(wrong, ['pending', 'filled again']);
});
