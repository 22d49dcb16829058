import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { z } from 'zod';

const VIOLATIONS = z.array(z.object({ id: z.string(), nodes: z.array(z.string()) }));

/** Checks a page with axe, and that it does not scroll sideways. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(
    'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) })))',
  );
  expect(VIOLATIONS.parse(found)).toEqual([]);
  const isWide = await page.evaluate('document.documentElement.scrollWidth > window.innerWidth');
  expect(isWide).toBe(false);
}
