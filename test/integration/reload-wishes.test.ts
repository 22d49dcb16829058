import { expect, inject, test } from 'vitest';
import { testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const open = opening();
const WALLET = '0x52908400098527886e0f7030069857d2e4169ee7';
const DAY = 86_400;

test('a shorter overdueAfter applies to the transfers of an unchanged page with its next poll', async () => {
  const hook = await open.started(new Hook());
  const seconds = Math.floor(Date.now() / 1_000);
  const record = intentRecord(hashOf(1), 'pending', seconds - 2 * DAY);
  const upstream = await open.started(new ScriptedUpstream(() => ({ records: [record] })));
  const prefix = testPrefix();
  const config = (overdueAfter: string) => ({
    ...{ baseUrl: upstream.url, redisUrl: inject('redisUrl'), prefix },
    receivers: { hook: { url: hook.url, more: { events: ['intent.*'] } } },
    subscriptions: [{ name: 'w', wallets: [WALLET], history: 'emit', overdueAfter, receivers: ['hook'] }],
    upstream: { requestsPerSecond: 20 },
  });
  const { write } = await reloadable(config('1000h'), { later: open.later });
  await hook.until((came) => came.length === 1);
  const pages = (): number => upstream.requests.filter(({ query }) => query.wallet !== undefined).length;
  const before = pages();
  await eventually('the page is polled again, unchanged', async () => pages() > before + 5);
  const reloaded = pages();
  await write(config('10s'));
  const came = await hook.until((all) => all.length === 2);
  expect(came.at(-1)?.event.type).toBe('intent.overdue');
  // Without it, the page is ingested again after 300 s.
  expect(pages() - reloaded).toBeLessThan(100);
});
