import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Program } from '../support/program.ts';

test('the acts of an operator in a day lose nothing, repeat nothing under another id and cause no gap', async ({
  onTestFinished,
}) => {
  const run = join(import.meta.dirname, '../chaos/operator.ts');
  const operator = await Program.start(run, ['--acts', '25', '--seed', '1']);
  onTestFinished(async () => {
    operator.send('SIGTERM');
    await operator.ending();
  });
  const { code } = await operator.ending();
  expect(operator.output()).toMatch(/it all adds up/);
  expect(code).toBe(0);
});
