import { afterAll, beforeAll, describe, test } from 'vitest';
import { asGiven, givenService, lackOf } from './given.ts';
import { type Preparation, prepareSandboxes } from './preparation.ts';
import { nameOf } from './suite/rule.ts';
import { RULES } from './suite/suite.ts';

const service = await givenService(process.env);
let preparation: Preparation;

beforeAll(async () => {
  preparation = service === null ? await prepareSandboxes() : asGiven(service);
});

afterAll(async () => {
  await preparation.close();
});

describe.each([...new Set(RULES.map((rule) => rule.section))])('%s', (section) => {
  for (const rule of RULES.filter((candidate) => candidate.section === section)) {
    const lack = service === null ? null : lackOf(service, rule);
    const name = lack === null ? nameOf(rule) : `${nameOf(rule)} (skipped: needs ${lack})`;
    test.skipIf(lack !== null)(name, async () => {
      await rule.check(await preparation.at(rule.stage ?? 'open'));
    });
  }
});
