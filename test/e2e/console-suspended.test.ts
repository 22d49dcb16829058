import { expect, test } from 'vitest';
import { expectAccessible } from '../support/accessible.ts';
import { startBrowser, watchedPage } from '../support/browser.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { ONE, REST, suspensionStage, TREASURY, TWO, WALLET } from '../support/suspension-stage.ts';

const CHROMIUM = needs(PARTS.chromium);
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
