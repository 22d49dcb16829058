import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const MODULE = resolve(import.meta.dirname, '../../src/v8-flags.ts');

test('V8 knows all flags that the program sets', async () => {
  const program = `import(${JSON.stringify(MODULE)}).then(({ setV8Flags }) => setV8Flags())`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', program]);
  expect(stdout + stderr).toBe('');
});
