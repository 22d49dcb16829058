import { expect, inject, test } from 'vitest';
import { startBrowser, watchedPage } from '../support/browser.ts';
import { testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const CHROMIUM = needs(PARTS.chromium);
const { later } = opening();

test.skipIf(CHROMIUM.skip)(
  `each page states the config file, where it differs from the current config${CHROMIUM.note}`,
  async () => {
    const config = (intents: string[], mode = 'watch') => ({
      baseUrl: 'http://127.0.0.1:9',
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { backend: { url: 'http://127.0.0.1:9/' } },
      subscriptions: [{ name: 'orders', receivers: ['backend'], intents }],
      more: { reload: { mode } },
    });
    const prefix = testPrefix();
    const intents = [1, 2, 3, 4].map(hashOf);
    const { daemon, write } = await reloadable(config(intents), { later });
    const browser = await startBrowser();
    later(() => browser.close());
    const { page, complaints } = await watchedPage(browser, daemon.url, {
      viewport: { width: 360, height: 900 },
    });
    const shows = async (text: RegExp): Promise<void> => {
      await page.goto(`${daemon.url}/`);
      await page.getByRole('alert').getByText(text).first().waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth > window.innerWidth')).toBe(false);
    };

    await write(config([hashOf(9)]));
    const held = await daemon.reload();
    if (held?.state !== 'held') throw new Error('it is not held');
    await shows(/is held since .*it would remove 4 of 4 subjects/);
    await shows(new RegExp(`^intentwatch reload --confirm ${held.removal.digest}$`));
    await write('upstream: nonsense');
    await daemon.reload();
    await shows(/was refused at/);

    await write(config(intents, 'manual'));
    await daemon.reload();
    await page.goto(`${daemon.url}/`);
    await page.getByRole('heading', { name: 'Transfers', level: 1 }).waitFor();
    await write(config([...intents, hashOf(9)], 'manual'));
    await eventually('the change is noticed', () => daemon.fileState?.state === 'changed');
    await shows(/has changed at/);

    const { daemon: other } = await reloadable(config([hashOf(1)]), { later });
    await page.goto(`${other.url}/`);
    await page
      .getByRole('alert')
      .getByText(/has removed 3 of 4 subjects/)
      .waitFor();
    expect(complaints.filter((complaint) => !complaint.startsWith('request:'))).toEqual([]);
  },
);
