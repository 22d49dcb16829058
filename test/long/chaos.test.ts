import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Program } from '../support/program.ts';

test('nothing is lost and nothing invented while daemons, Redis, receivers and the mail server fail at random', async ({
  onTestFinished,
}) => {
  const run = join(import.meta.dirname, '../chaos/run.ts');
  const chaos = await Program.start(run, ['--seconds', '12', '--seed', '7']);
  onTestFinished(async () => {
    chaos.send('SIGTERM');
    await chaos.ending();
  });
  const { code } = await chaos.ending();
  expect(chaos.output()).toMatch(/lost 0, invented 0: it all adds up/);
  expect(code).toBe(0);
});
