import { join } from 'node:path';
import { expect, test } from 'vitest';
import { opening } from '../support/opening.ts';
import { Program } from '../support/program.ts';

const { later } = opening();

const RUN = join(import.meta.dirname, '../chaos/run.ts');

test('hostile requests and answers lose nothing, repeat nothing and leave memory flat', async () => {
  const run = await Program.start(RUN, ['--hostile', '--seconds', '120', '--seed', '1']);
  // It ends all processes that it started, also where this test times out.
  later(() => run.end('SIGTERM'));
  const { code } = await run.ending();
  expect(run.output()).toMatch(/it all adds up$/m);
  expect(code).toBe(0);
}, 1_800_000);
