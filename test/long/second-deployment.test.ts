import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';

const ROOT = join(import.meta.dirname, '../..');

/** The integration suite of polls, quotes and proofs: its daemons poll an upstream. */
const SUITE = [
  'by-transaction',
  'further-transfers',
  'gateway-records',
  'poll-worker',
  'tracking',
  'wallet-pages',
  'open-status',
  'second-source',
  'check-routes',
  'imported-quotes',
  'partner-routes',
  'quote-expiry',
  'routes',
  'quote-vault',
  'checks-daemon',
  'quoted-payments',
].map((name) => `test/integration/${name}.test.ts`);

const REPORT = z.object({
  numTotalTests: z.int(),
  numPassedTests: z.int(),
  testResults: z.array(
    z.object({
      name: z.string(),
      assertionResults: z.array(
        z.object({ fullName: z.string(), status: z.string(), failureMessages: z.array(z.string()) }),
      ),
    }),
  ),
});

test('the suite passes at a deployment with other names, no key, current paths and the oldest first', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-second-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const file = join(folder, 'report.json');
  const program = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const args = ['run', '--reporter=json', `--outputFile=${file}`, '--maxWorkers=2', ...SUITE];
  const output = await promisify(execFile)(process.execPath, [program, ...args], {
    cwd: ROOT,
    env: { ...process.env, DEPLOYMENT: 'second' },
    maxBuffer: 64 * 1_024 * 1_024,
  }).catch(String);
  const report = REPORT.parse(JSON.parse(await readFile(file, 'utf8').catch(() => fail(output))));
  const others = report.testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status !== 'passed');
  const skipped = others.filter(({ fullName }) =>
    fullName.endsWith('(skipped: needs a deployment with a key)'),
  );
  expect(others).toEqual(skipped);
  expect(report.testResults.length).toBe(SUITE.length);
  expect(report.numPassedTests).toBe(report.numTotalTests - 1);
  expect(report.numTotalTests).toBeGreaterThan(SUITE.length * 5);
}, 1_800_000);

function fail(output: unknown): never {
  throw new Error(`the suite made no report: ${JSON.stringify(output)}`);
}
