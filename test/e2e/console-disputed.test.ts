import { expect, inject, test } from 'vitest';
import { expectAccessible } from '../support/accessible.ts';
import { startBrowser, watchedPage } from '../support/browser.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { newSandbox } from '../support/deployment.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { orderAt } from '../support/sandbox-order.ts';

const CHROMIUM = needs(PARTS.chromium);
const WALLET = '0x52908400098527886e0f7030069857d2e4169ee7';

const open = opening();

test.skipIf(CHROMIUM.skip)(
  `the page lists transfers with a disputed payment, and shows what arrived${CHROMIUM.note}`,
  async () => {
    const sandbox = await open.started(
      newSandbox({ seed: 5, transfersPerSecond: 0, timeScale: 100, finalitySeconds: 200 }),
    );
    const hook = await open.started(new TestReceiver());
    const url = sandbox.rpcUrl(10, 'own');
    const other = url.replace('127.0.0.1', 'localhost').replace('/own', '/other');
    const { daemon } = await startDaemon({
      ...{ baseUrl: sandbox.url, redisUrl: inject('redisUrl'), prefix: testPrefix() },
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 'treasury', wallets: [WALLET], recipients: [WALLET], receivers: ['hook'] }],
      more: {
        chains: {
          10: {
            rpc: [
              { name: 'own', url },
              { name: 'other', url: other },
            ],
          },
        },
      },
    });
    open.later(() => daemon.close());
    for (const more of [{}, { lie: 'short' } as const])
      await orderAt(sandbox, { funder: WALLET, recipient: WALLET, ...more });
    await hook.until((events) => events.some(({ type }) => type === 'intent.disputed'));
    await hook.until((events) => events.some(({ type }) => type === 'intent.verified'));
    const browser = await startBrowser();
    open.later(() => browser.close());
    const { page, complaints } = await watchedPage(browser, daemon.url, {
      viewport: { width: 360, height: 740 },
      colorScheme: 'dark',
    });
    const tile = page.getByRole('navigation', { name: 'Lists' }).getByRole('link', { name: 'Disputed' });
    await tile.getByText('1', { exact: true }).waitFor();
    await tile.click();
    const rows = page.getByRole('list', { name: 'Disputed' }).getByRole('listitem');
    await rows.getByText('disputed', { exact: true }).waitFor();
    expect(await rows.count()).toBe(1);
    await expectAccessible(page);
    await rows.getByRole('link').first().click();
    const facts = page.getByRole('region', { name: 'Facts' });
    await facts.getByText('Destination on the chain').waitFor();
    expect(await facts.innerText()).toMatch(new RegExp(`moved [\\d,.]+ USDC to ${WALLET}`));
    expect(complaints).toEqual([]);
  },
);
