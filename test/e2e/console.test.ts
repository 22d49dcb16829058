import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectAccessible } from '../support/accessible.ts';
import { ADMIN_TOKEN, type ApiStage, apiStage, READ_TOKEN } from '../support/api-stage.ts';
import { contrastOf, pressByKeyboard, startBrowser, watchedPage } from '../support/browser.ts';
import { Hook } from '../support/hook.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const CHROMIUM = needs(PARTS.chromium);
const PHONE = {
  viewport: { width: 360, height: 740 },
  colorScheme: 'dark',
  reducedMotion: 'reduce',
} as const;
const DESK = { viewport: { width: 1280, height: 900 }, colorScheme: 'light' } as const;

const closers: (() => Promise<unknown>)[] = [];
const hooks = { backend: new Hook(), broken: new Hook(() => 500), operator: new Hook() };
let stage: ApiStage;
let browser: Browser;

beforeAll(async () => {
  if (CHROMIUM.skip) return;
  for (const hook of Object.values(hooks)) {
    await hook.start();
    closers.push(() => hook.close());
  }
  stage = await apiStage(hooks, { later: (close) => void closers.push(close) });
  for (const intent of [hashOf(1), hashOf(2)]) stage.setStatus(intent, 'pending');
  browser = await startBrowser();
  closers.push(() => browser.close());
});

afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token of the API').waitFor();
  await page.keyboard.type(token);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Transfers' }).waitFor();
}

test.skipIf(CHROMIUM.skip)(
  `a transfer is found by its metadata, watched as it fills, a dead letter resent, a receiver paused and resumed: on a phone, in the dark, with the keyboard${CHROMIUM.note}`,
  async () => {
    const { page, complaints } = await watchedPage(browser, stage.url, PHONE);
    await page.getByLabel('Token of the API').waitFor();
    await expectAccessible(page);
    await signIn(page, ADMIN_TOKEN);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('pending').first().waitFor();
    await expectAccessible(page);

    await page.keyboard.press('/');
    await page.keyboard.type('order=1042');
    await page.keyboard.press('Enter');
    await page.getByText('1 found for').waitFor();
    await expectAccessible(page);
    await page.keyboard.press('/');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('1042');
    await page.keyboard.press('Enter');
    await page.getByText('1 found for 1042').waitFor();
    await pressByKeyboard(page, await page.locator('.row-link').innerText().then(firstLine));

    const state = page.locator('.subject-state .pill').first();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    expect(await state.innerText()).toBe('pending');
    stage.setStatus(hashOf(1), 'filled');
    await page.locator('.subject-state').getByText('filled').waitFor();
    await page.getByText('intent.filled', { exact: true }).waitFor();
    await page.getByText('given up').nth(1).waitFor();
    await expectAccessible(page);

    await pressByKeyboard(page, 'Undelivered');
    await page.getByRole('button', { name: 'Resend intent.filled to broken' }).waitFor();
    await expectAccessible(page);
    hooks.broken.answer = () => 204;
    const sent = hooks.broken.came.filter(({ event }) => event.type === 'intent.filled').length;
    // The message disappears after some seconds: the wait begins before it is shown.
    const isSent = page.getByText('Sent to broken once more.').waitFor();
    await pressByKeyboard(page, 'Resend intent.filled to broken');
    await isSent;
    await hooks.broken.until(
      (came) => came.filter(({ event }) => event.type === 'intent.filled').length > sent,
    );
    await page.getByRole('button', { name: 'Resend intent.filled to broken' }).waitFor({ state: 'detached' });

    await pressByKeyboard(page, 'Receivers');
    await page.getByRole('heading', { name: 'backend' }).waitFor();
    await expectAccessible(page);
    const isAnswered = page.getByText('backend answered 204').waitFor();
    await pressByKeyboard(page, 'Send a test event to backend');
    await isAnswered;
    await pressByKeyboard(page, 'Pause backend');
    await page.getByRole('button', { name: 'Resume backend' }).waitFor();
    stage.setStatus(hashOf(2), 'filled');
    const card = page.getByRole('listitem', { name: 'backend' });
    await card.getByText('paused', { exact: true }).waitFor();
    await expectAccessible(page);
    await pressByKeyboard(page, 'Resume backend');
    await card.getByText('healthy').waitFor();
    await hooks.backend.until((came) =>
      came.some(
        ({ event: { type, data } }) => type === 'intent.filled' && data.subject.id.includes(hashOf(2)),
      ),
    );

    await pressByKeyboard(page, 'Routes');
    await page.getByRole('heading', { name: 'Routes' }).waitFor();
    await expectAccessible(page);
    // A request under way at the sign-out is answered 401, which the browser logs.
    expect(complaints).toEqual([]);
    await pressByKeyboard(page, 'Sign out');
    await page.getByLabel('Token of the API').waitFor();
  },
);

test.skipIf(CHROMIUM.skip)(
  `a login with the read token shows everything and offers no act; foreign text is text${CHROMIUM.note}`,
  async () => {
    const { page, complaints } = await watchedPage(browser, stage.url, DESK);
    await signIn(page, READ_TOKEN);
    const script = '<img src=x onerror=alert(1)>';
    await page.goto(`${stage.url}/#/search/${encodeURIComponent(script)}`);
    await page.getByText(`found for ${script}`).waitFor();
    expect(await page.locator('main img').count()).toBe(0);
    for (const [view, heading] of [
      ['transfers/recent', 'Transfers'],
      ['undelivered', 'Undelivered'],
      ['suspended', 'Suspended'],
      ['receivers', 'Receivers'],
      ['routes', 'Routes'],
      ['nowhere', 'Not found'],
    ] as const) {
      await page.goto(`${stage.url}/#/${view}`);
      await page.getByRole('heading', { name: heading, exact: true }).waitFor();
      await page.getByRole('status', { name: 'Loading' }).waitFor({ state: 'detached' });
      await expectAccessible(page);
      expect(await page.locator('main button').count()).toBe(0);
    }
    expect(complaints).toEqual([]);
  },
);

test.skipIf(CHROMIUM.skip)(
  `the text of each button is readable with the focus, under the mouse and while pressed, in both schemes${CHROMIUM.note}`,
  async () => {
    await stage.call({ method: 'POST', path: '/receivers/operator/pause' });
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await watchedPage(browser, stage.url, { ...DESK, colorScheme });
      await expectReadableButtons(page, '.primary.wide');
      await page.getByLabel('Token of the API').focus();
      await signIn(page, ADMIN_TOKEN);
      await page.goto(`${stage.url}/#/receivers`);
      await expectReadableButtons(page, '.primary');
      await page.goto(`${stage.url}/#/subject/${encodeURIComponent(`intent:${hashOf(1)}`)}`);
      await expectReadableButtons(page, '.small');
      await page.context().close();
    }
    await stage.call({ method: 'POST', path: '/receivers/operator/resume' });
  },
);

/** Checks all buttons of a page, once it has one of this kind. */
async function expectReadableButtons(page: Page, kind: string): Promise<void> {
  await page.locator(`.button${kind}`).first().waitFor();
  const buttons = await page.locator('.button:enabled').all();
  for (const [index, button] of buttons.entries()) {
    const contrast = () => contrastOf(page, '.button:enabled', index);
    await button.focus();
    const focused = await contrast();
    await button.hover();
    const hovered = await contrast();
    await page.mouse.down();
    const pressed = await contrast();
    // Released beside it, so that nothing is done.
    await page.mouse.move(0, 0);
    await page.mouse.up();
    const least = Math.min(focused, hovered, pressed);
    expect(least, `${await button.innerText()} ${[focused, hovered, pressed]}`).toBeGreaterThanOrEqual(4.5);
  }
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? '';
}
