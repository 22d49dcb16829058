import { AssertionError } from 'node:assert';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Preparation, prepareSandboxes } from '../conformance/preparation.ts';
import { OUTLINE, placeOf } from '../conformance/suite/outline.ts';
import { nameOf, type Target } from '../conformance/suite/rule.ts';
import { forged, QUOTE_SIGNATURE_RULES } from '../conformance/suite/rules/quote-signature.ts';
import { RULES } from '../conformance/suite/suite.ts';
import { UNOBSERVABLE } from '../conformance/suite/unobservable.ts';
import { RewritingProxy } from '../support/rewriting-proxy.ts';

let preparation: Preparation;
const proxies = new Map<string, RewritingProxy>();

beforeAll(async () => {
  preparation = await prepareSandboxes('0.9.0');
});

afterAll(async () => {
  for (const proxy of proxies.values()) await proxy.close();
  await preparation.close();
});

async function proxyOf(origin: string): Promise<RewritingProxy> {
  const proxy = proxies.get(origin) ?? new RewritingProxy(origin);
  if (!proxies.has(origin)) {
    proxies.set(origin, proxy);
    await proxy.start();
  }
  return proxy;
}

async function through(target: Target): Promise<Target> {
  const { quotesUrl } = target.material;
  if (quotesUrl === undefined) throw new Error('the sandbox has an open quoting service');
  const [service, quotes] = [await proxyOf(target.baseUrl), await proxyOf(quotesUrl)];
  return { ...target, baseUrl: service.url, material: { ...target.material, quotesUrl: quotes.url } };
}

describe('a rule that is broken on the way is found out, and one that is not holds', () => {
  test.each(RULES.map((rule) => [nameOf(rule), rule] as const))('%s', async (_name, rule) => {
    const target = await through(await preparation.at(rule.stage ?? 'open'));
    for (const proxy of proxies.values()) proxy.rewriting = {};
    await rule.check(target);
    for (const proxy of proxies.values()) proxy.rewriting = rule.breakage;
    await expect(rule.check(target)).rejects.toThrow(AssertionError);
  });
});

test('a quote that another signs in the right way holds, where every chain names that other', async () => {
  const target = await through(await preparation.at('open'));
  for (const proxy of proxies.values()) proxy.rewriting = forged((right) => right);
  for (const rule of QUOTE_SIGNATURE_RULES) await rule.check(target);
});

test('every rule has a breakage', () => {
  const without = RULES.filter(
    ({ breakage: { request, answer } }) => request === undefined && answer === undefined,
  );
  expect(without).toEqual([]);
});

test('every name is of one rule', () => {
  const ids = [...RULES, ...UNOBSERVABLE].map(({ id }) => id);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});

test('every place of the interface has a rule or a reason why it has none', () => {
  const covered = new Set([...RULES, ...UNOBSERVABLE].map(({ id }) => placeOf(id)));
  expect(
    Object.values(OUTLINE)
      .flat()
      .filter((place) => !covered.has(place)),
  ).toEqual([]);
});

test('every rule and every reason has a place in the interface', () => {
  const places = Object.fromEntries(
    Object.entries(OUTLINE).flatMap(([section, ids]) => ids.map((id) => [id, section] as const)),
  );
  const failed = [...RULES, ...UNOBSERVABLE].filter(({ id, section }) => places[placeOf(id)] !== section);
  expect(failed.map(({ id, section }) => `${section}: ${id}`)).toEqual([]);
});
