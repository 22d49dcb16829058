import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { onTestFailed } from 'vitest';
import { z } from 'zod';
import { PARTS } from './optional-parts.ts';

/** Starts Chromium without a screen, and without its own sandbox, which needs rights that a container does not give. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = PARTS.chromium.place;
  if (executablePath === null) throw new Error('found no Chromium, expected one');
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
}

/** A page with its forbidden acts: messages on the console, and requests to other hosts. */
export type WatchedPage = { page: Page; complaints: string[] };

/** Opens a page in a context of its own, and watches it. */
export async function watchedPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions,
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(170_000);
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`)) complaints.push(`request: ${request.url()}`);
  });
  onTestFailed(async () => {
    const text = await page.locator('body').innerText().catch(String);
    console.error(`the page at ${page.url()}:`, text, complaints);
  });
  await page.goto(`${url}/`);
  return { page, complaints };
}

// A text, because these files do not know the globals of a browser.
const FOCUSED_NAME =
  "document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent?.trim() ?? ''";
const FOCUSED = z.string();

/** Moves the focus with the Tab key to the element with this name, then presses Enter. */
export async function pressByKeyboard(page: Page, name: string): Promise<void> {
  const seen: string[] = [];
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press('Tab');
    const focused = FOCUSED.parse(await page.evaluate(FOCUSED_NAME));
    if (focused.startsWith(name)) {
      await page.keyboard.press('Enter');
      return;
    }
    seen.push(focused.slice(0, 40));
  }
  throw new Error(`found ${JSON.stringify(seen)}, expected to reach ${name} with the Tab key`);
}

// A text, as above. Paints the colours one over another, which resolves transparent ones and `color-mix`.
const CONTRAST = `(element) => {
  const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
  const luminance = (...colours) => {
    for (const colour of colours) {
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
    }
    const [red, green, blue] = [...pen.getImageData(0, 0, 1, 1).data]
      .map((byte) => byte / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  const grounds = [];
  for (let one = element; one !== null; one = one.parentElement)
    grounds.unshift(getComputedStyle(one).backgroundColor);
  const ground = luminance('white', ...grounds);
  const text = luminance(getComputedStyle(element).color);
  return Math.max(ground, text) / Math.min(ground, text);
}`;

/** Contrast of the text of the n-th such element with its background, as WCAG 2.2 defines it: 1 to 21. */
export async function contrastOf(page: Page, selector: string, index: number): Promise<number> {
  const element = `document.querySelectorAll(${JSON.stringify(selector)})[${index}]`;
  return z.number().parse(await page.evaluate(`(${CONTRAST})(${element})`));
}
