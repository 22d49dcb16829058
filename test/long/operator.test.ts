import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Program } from '../support/program.ts';

test('what an operator does in a day loses nothing, repeats nothing under another id and leaves no gap', async ({
  onTestFinished,
}) => {
  const run = join(import.meta.dirname, '../chaos/operator.ts');
  const operator = await Program.start(run, ['--acts', '25', '--seed', '1']);
  onTestFinished(async () => {
    operator.send('SIGTERM');
    await operator.ending();
  });
  const { code } = await operator.ending();
  expect(operator.said()).toMatch(/it all adds up/);
  expect(code).toBe(0);
});
