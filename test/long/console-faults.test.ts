import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN_TOKEN, type ApiStage, apiStage } from '../support/api-stage.ts';
import { startBrowser, watchedPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const CHROMIUM = needs(PARTS.chromium);
const DESK = { viewport: { width: 1280, height: 900 } } as const;
const PHONE = { viewport: { width: 360, height: 740 } } as const;

/** Metadata that would show if it were rendered as more than text. */
const HOSTILE = {
  note: '<img src=x onerror=alert(1)>',
  turned: '\u202egnp.live\u2066\u200f',
  long: 'x'.repeat(3_500),
};

const closers: (() => Promise<unknown>)[] = [];
const hooks = { backend: new Hook(), broken: new Hook(() => 500), operator: new Hook() };
let redis: RedisProcess;
let stage: ApiStage;
let browser: Browser;

beforeAll(async () => {
  if (CHROMIUM.skip) return;
  for (const hook of Object.values(hooks)) {
    await hook.start();
    closers.push(() => hook.close());
  }
  redis = await RedisProcess.create();
  closers.push(() => redis.close());
  stage = await apiStage(hooks, {
    later: (close) => void closers.push(close),
    redisUrl: redis.url,
    metadata: HOSTILE,
  });
  for (const intent of [hashOf(1), hashOf(2)]) stage.setStatus(intent, 'pending');
  browser = await startBrowser();
  closers.push(() => browser.close());
});

afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function signIn(page: Page): Promise<void> {
  await page.getByLabel('Token of the API').fill(ADMIN_TOKEN);
  await page.keyboard.press('Enter');
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByText('pending').first().waitFor();
}

const bannerOf = (page: Page) => page.getByText('What you see may be old');

test.skipIf(CHROMIUM.skip)(
  `metadata is text, with any content, and makes no page wider than its screen${CHROMIUM.note}`,
  async () => {
    for (const options of [DESK, PHONE]) {
      const { page, complaints } = await watchedPage(browser, stage.url, options);
      await signIn(page);
      for (const view of ['transfers/recent', `subject/${encodeURIComponent(`intent:${hashOf(2)}`)}`]) {
        await page.goto(`${stage.url}/#/${view}`);
        await page.getByText(HOSTILE.note).first().waitFor();
        expect(await page.locator('main img').count()).toBe(0);
        expect(await page.evaluate('document.documentElement.scrollWidth > window.innerWidth')).toBe(false);
      }
      expect(complaints).toEqual([]);
      await page.context().close();
    }
  },
);

test.skipIf(CHROMIUM.skip)(
  `a page warns that its data may be old while Redis is frozen, and is live by itself afterwards, as is one that was opened meanwhile${CHROMIUM.note}`,
  async () => {
    const { page } = await watchedPage(browser, stage.url, DESK);
    await signIn(page);
    const end = new AbortController();
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const stream = await fetch(`${stage.url}/api/v1/events/stream`, { headers, signal: end.signal });
    let came = 0;
    const drained = stream.body
      ?.pipeTo(new WritableStream({ write: () => void came++ }))
      .catch(() => undefined);
    await eventually('a heartbeat', () => came >= 2);
    redis.freeze();
    await bannerOf(page).waitFor();
    const before = came;
    expect(await page.getByText('pending').count()).toBeGreaterThan(0);
    const late = await page.context().newPage();
    late.setDefaultTimeout(170_000);
    await late.goto(`${stage.url}/`);
    await late.getByRole('alert').waitFor();
    const silentMs = performance.now() + 11_000;
    await eventually('the time of two heartbeats', () => performance.now() > silentMs);
    expect(came).toBe(before);
    redis.thaw();
    await eventually('a heartbeat again', () => came > before);
    for (const one of [page, late]) {
      await one.getByText('Live', { exact: true }).waitFor();
      await bannerOf(one).waitFor({ state: 'detached' });
      await one.getByText('pending').first().waitFor();
    }
    stage.setStatus(hashOf(1), 'settled');
    await page.goto(`${stage.url}/#/subject/${encodeURIComponent(`intent:${hashOf(1)}`)}`);
    const datesOf = (step: string) => page.locator('.way-step', { hasText: step }).locator('time');
    await datesOf('Settled').waitFor();
    // No answer showed it as filled: the time of that is unknown.
    expect([await datesOf('Funded').count(), await datesOf('Filled').count()]).toEqual([1, 0]);
    await page.context().close();
    end.abort();
    await drained;
  },
);

test.skipIf(CHROMIUM.skip)(
  `a page beyond the limit of live pages states it, and is live once another is closed${CHROMIUM.note}`,
  async () => {
    const { page: first } = await watchedPage(browser, stage.url, DESK);
    await signIn(first);
    const cookies = await first.context().cookies();
    const headers = { cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; ') };
    const others = new AbortController();
    // The streams of closed pages may still be open for a short time.
    const stream = () =>
      eventually('a stream', async () => {
        const answer = await fetch(`${stage.url}/api/v1/events/stream`, { headers, signal: others.signal });
        return answer.status === 200 && answer;
      });
    // Referenced until the end: the garbage collector cuts an unreferenced answer off.
    const held = await Promise.all(Array.from({ length: 15 }, stream));
    const page = await first.context().newPage();
    page.setDefaultTimeout(170_000);
    await page.goto(`${stage.url}/`);
    await page.getByText('Too many pages of this token are open').waitFor();
    await page.getByText('Not live', { exact: true }).waitFor();
    await page.getByText('pending').first().waitFor();
    expect(await bannerOf(page).count()).toBe(0);
    expect(held.map(({ bodyUsed }) => bodyUsed)).toEqual(Array(15).fill(false));
    others.abort();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('Too many pages').waitFor({ state: 'detached' });
    await page.context().close();
  },
);

test.skipIf(CHROMIUM.skip)(
  `a page reads anew the data that the daemon could not give for a while${CHROMIUM.note}`,
  async () => {
    const { page } = await watchedPage(browser, stage.url, DESK);
    await signIn(page);
    let refused = 0;
    // Until the page shows the message, which on a slow machine takes some refusals.
    let isReported = false;
    await page.route('**/api/v1/subjects/**', async (route) => {
      if (isReported && refused >= 2) return route.continue();
      refused += 1;
      const problem = { status: 503, title: 'Unavailable', detail: 'Redis gave no answer in time' };
      const headers = { 'retry-after': '1' };
      return route.fulfill({
        status: 503,
        headers,
        contentType: 'application/problem+json',
        body: JSON.stringify(problem),
      });
    });
    await page.goto(`${stage.url}/#/subject/${encodeURIComponent(`intent:${hashOf(2)}`)}`);
    await page.getByText('Redis gave no answer in time').waitFor();
    isReported = true;
    await page.locator('.entry').first().waitFor();
    await page.getByText('Redis gave no answer in time').waitFor({ state: 'detached' });
    expect(refused).toBeGreaterThanOrEqual(2);
    await page.context().close();
  },
);

test.skipIf(CHROMIUM.skip)(
  `a page requests a token again once the one that it came with is gone from the config${CHROMIUM.note}`,
  async () => {
    const { page } = await watchedPage(browser, stage.url, DESK);
    await signIn(page);
    const server = {
      host: '127.0.0.1',
      port: 0,
      token: 'another-token-from-now-on',
      secretsKey: 'k'.repeat(32),
    };
    await stage.write({ ...stage.config, more: { ...stage.config.more, server } });
    await page.getByLabel('Token of the API').waitFor();
    await page.context().close();
  },
);
