import { expect, test } from 'vitest';
import { expectAccessible } from '../support/accessible.ts';
import { startBrowser, watchedPage } from '../support/browser.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { ONE, REST, suspensionStage, TREASURY, TWO, WALLET } from '../support/suspension-stage.ts';

const CHROMIUM = needs(PARTS.chromium);
const DESK = { viewport: { width: 1280, height: 900 } } as const;
const PHONE = { viewport: { width: 360, height: 740 }, colorScheme: 'dark' } as const;

const open = opening();

test.skipIf(CHROMIUM.skip)(
  `the page shows a suspended item with the events that wait, and the events dropped at its end${CHROMIUM.note}`,
  async () => {
    const { backend, reload, change, url } = await suspensionStage(open);
    await change(ONE, 'pending');
    await backend.until((came) => came.length === 1);
    await reload([REST]);
    await change(ONE, 'filled');
    await change(TWO, 'pending');
    const browser = await startBrowser();
    open.later(() => browser.close());
    const { page, complaints } = await watchedPage(browser, url(), PHONE);
    await page.getByRole('link', { name: 'Suspended' }).click();
    const suspended = page.getByRole('list', { name: 'Suspended' }).getByRole('listitem');
    await suspended.getByText('2 events wait').waitFor();
    expect(await suspended.count()).toBe(1);
    const row = await suspended.innerText();
    expect(row).toContain('treasury');
    expect(row).toContain(WALLET.slice(0, 8));
    expect(row).toMatch(/removed in (23 h|1 d)/);
    expect(await page.getByText('Waited in vain').count()).toBe(0);
    await expectAccessible(page);

    await fetch(`${url()}/api/v1/suspended/remove`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: TREASURY.name }),
    });
    await page.reload();
    await page.getByText('Nothing is suspended.').waitFor();
    const dropped = page.getByRole('list', { name: 'Events that waited in vain' }).getByRole('listitem');
    await dropped.nth(1).waitFor();
    const texts = await dropped.allInnerTexts();
    expect(texts.map((text) => /intent\.\w+/.exec(text)?.[0])).toEqual(
      expect.arrayContaining(['intent.filled', 'intent.pending']),
    );
    expect(texts).toHaveLength(2);
    for (const text of texts) expect(text).toContain('treasury');
    await expectAccessible(page);
    await page.getByRole('link', { name: /intent\.filled/ }).click();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    expect(complaints).toEqual([]);
  },
);

test.skipIf(CHROMIUM.skip)(
  `a wallet is watched and leads to its transfers, and a refund, a late attempt and a 410 are stated${CHROMIUM.note}`,
  async () => {
    const { backend, change, url } = await suspensionStage(open);
    const browser = await startBrowser();
    open.later(() => browser.close());
    const { page, complaints } = await watchedPage(browser, url(), DESK);
    await page.goto(`${url()}/#/transfers/recent`);
    await page.getByText('watched', { exact: true }).waitFor();
    expect(await page.locator('.row').count()).toBe(1);
    backend.answer = () => 500;
    await change(ONE, 'pending');
    await change(ONE, 'refunded');
    await page.getByRole('link', { name: /^Wallet/ }).click();
    await page.locator('.subject-state').getByText('watched', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'its transfers' }).click();
    await page.getByText(`2 found for ${WALLET}`).waitFor();
    await page.getByRole('link', { name: /^Intent 0x/ }).click();
    await page.locator('.way-step.failed', { hasText: 'Refunded' }).locator('time').waitFor();

    const act = (word: string) => fetch(`${url()}/api/v1/receivers/backend/${word}`, { method: 'POST' });
    await backend.until((came) => came.length > 0);
    await act('pause');
    await page.goto(`${url()}/#/undelivered`);
    await page.getByText('waits for the receiver').first().waitFor();
    expect(await page.getByText(/next .* ago/).count()).toBe(0);
    backend.answer = () => 410;
    await act('resume');
    await change(TWO, 'pending');
    await page.goto(`${url()}/#/receivers`);
    await page.getByText('Disabled by an answer of 410.').waitFor();
    expect(complaints).toEqual([]);
  },
);

const fill = { p50Seconds: 12, p90Seconds: 40, p99Seconds: 4_000 };
const counts = { filled: 812, unfilled: 9, unfilledShare: 0.011, overdue: 12, overdueShare: 0.015 };
const ROUTE = { corridor: '8453:10', fill, settlement: fill, ...counts, refunded: 3, refundedShare: 0.004 };

test.skipIf(CHROMIUM.skip)(
  `a long list has all its rows on request, and a phone shows long hashes, all tabs and all columns${CHROMIUM.note}`,
  async () => {
    const { reload, url } = await suspensionStage(open);
    const intents = Array.from({ length: 120 }, (_, n) => hashOf(1_000 + n));
    await reload([TREASURY, { name: 'many', receivers: ['backend'], intents }]);
    const browser = await startBrowser();
    open.later(() => browser.close());
    const { page, complaints } = await watchedPage(browser, url(), PHONE);
    await page.route('**/api/v1/corridors', (route) =>
      route.fulfill({ json: { corridors: [ROUTE], chains: { 8453: 'Base', 10: 'Optimism' } } }),
    );
    await page.goto(`${url()}/#/transfers/recent`);
    await page.locator('.row').nth(99).waitFor();
    expect(await page.locator('.row').count()).toBe(100);
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.locator('.row').nth(120).waitFor();
    await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' });

    await page.goto(`${url()}/#/search/${hashOf(1_000)}`);
    await page.getByText('1 found for').waitFor();
    await expectAccessible(page);
    const tab = await page.getByRole('link', { name: 'Routes' }).boundingBox();
    expect((tab?.x ?? PHONE.viewport.width) + (tab?.width ?? 0)).toBeLessThanOrEqual(PHONE.viewport.width);
    await page.getByRole('link', { name: 'Routes' }).click();
    await page.getByText('12 (1.5 %)').waitFor();
    const frame = "document.querySelector('.table-frame')";
    expect(await page.evaluate(`${frame}.scrollWidth > ${frame}.clientWidth`)).toBe(false);
    await expectAccessible(page);
    expect(complaints).toEqual([]);
  },
);
