import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { OPEN_POINTS, SEEN_POINTS } from '../conformance/suite/deployments.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The rows of the two tables of the notes on the interface, as they are named there. */
const OPEN = [
  'intent transitions',
  'typical fill time',
  'gasless job `status`',
  'vault `state`',
  "vault lookup's query parameter",
  'unknown gasless job or vault',
  'order of wallet pages, cursor lifetime',
  'rate limits',
  'errors',
  'quote validity',
  'status of `deposit-address` records',
];
const SEEN = [
  'names',
  'key',
  'request of `POST /v1/quotes`',
  'quote, top level',
  '`fees[]`',
  '`steps[]`',
  '`execution`',
  'chain ids',
  'times',
  'status words',
  'vault, create',
  'vault, permit',
  'jobs',
  'gateway errors',
  'open quoting service',
  'status without a key',
  'Portal event',
  'not found',
];

describe('the page on conformance', () => {
  test('has every row of the notes on the interface', () => {
    expect(OPEN_POINTS.map(({ point }) => point)).toEqual(OPEN);
    expect(SEEN_POINTS.map(({ point }) => point)).toEqual(SEEN);
  });

  test.each(
    [...OPEN_POINTS, ...SEEN_POINTS].flatMap(({ point, daemon, sandbox }) => [
      [point, 'daemon', daemon] as const,
      [point, 'sandbox', sandbox] as const,
    ]),
  )('names for %s a test of the %s that exists', async (_point, _side, { file, words }) => {
    expect(await readFile(join(ROOT, file), 'utf8')).toContain(words);
  });
});
