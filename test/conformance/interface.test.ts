import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { WIRES } from '../../sandbox/quotes/quote-shape.ts';
import { asGiven, givenService, lackOf } from './given.ts';
import { type Preparation, prepareSandboxes } from './preparation.ts';
import { nameOf } from './suite/rule.ts';
import { RULES } from './suite/suite.ts';
import { Tally } from './suite/tally.ts';

/** Number of times that the sandboxes showed the object of each rule, for docs/conformance.md. */
const SHOWN_FILE = join(import.meta.dirname, 'suite/shown.json');

const service = await givenService(process.env);

/** The given service, else sandboxes of every wire format. */
const services: { name: string; prepare: () => Promise<Preparation> }[] =
  service === null
    ? WIRES.map((wire) => ({ name: `the sandbox, --wire ${wire}`, prepare: () => prepareSandboxes(wire) }))
    : [{ name: 'the given service', prepare: async () => asGiven(service) }];

describe.each(services)('$name', ({ prepare }) => {
  const shown: Record<string, number> = {};
  let preparation: Preparation;

  beforeAll(async () => {
    preparation = await prepare();
  });

  afterAll(async () => {
    await preparation.close();
  });

  describe.each([...new Set(RULES.map((rule) => rule.section))])('%s', (section) => {
    for (const rule of RULES.filter((candidate) => candidate.section === section)) {
      const lack = service === null ? null : lackOf(service, rule);
      const name = lack === null ? nameOf(rule) : `${nameOf(rule)} (skipped: needs ${lack})`;
      test.skipIf(lack !== null)(name, async () => {
        const tally = new Tally();
        await rule.check({ ...(await preparation.at(rule.stage ?? 'open')), tally });
        shown[rule.id] = tally.times;
        expect(tally.times, 'how often the thing was shown').toBeGreaterThan(0);
      });
    }
  });

  /** `CONFORMANCE_SHOWN=write` writes the file anew; `npm run generate` makes the page of it. */
  test.skipIf(service !== null)(
    'the number of examples of each shape equals the one on the page',
    async () => {
      if (process.env.CONFORMANCE_SHOWN === 'write') {
        await writeFile(SHOWN_FILE, `${JSON.stringify(shown, null, 2)}\n`);
      }
      const reported = z.record(z.string(), z.int()).parse(JSON.parse(await readFile(SHOWN_FILE, 'utf8')));
      expect(shown).toEqual(reported);
    },
  );
});
