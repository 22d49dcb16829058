import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mapTests } from '../mutants/mapped-tests.ts';
import { drawMutants, mutantsOf } from '../mutants/mutate.ts';

const CODE = `import { a } from './a.ts';
/** True where a > 1 && b. */
export function isOver(a: number): boolean {
  return a > 1 && b; // and more
}
`;

test('changes lines of code alone, one at a time', () => {
  expect(mutantsOf('src/a.ts', CODE)).toEqual([
    {
      file: 'src/a.ts',
      line: 4,
      before: '  return a > 1 && b; // and more',
      after: '  return a > 1 || b; // and more',
    },
    {
      file: 'src/a.ts',
      line: 4,
      before: '  return a > 1 && b; // and more',
      after: '  return a <= 1 && b; // and more',
    },
  ]);
  expect(
    mutantsOf('a-1.lua', '--[[\n  One and two.\n]]\n-- if a == b\nif a == b then\n').map(
      ({ after }) => after,
    ),
  ).toEqual(['if a ~= b then', 'if false and a == b then']);
});

test('draws the same mutants by the same seed, at most one of a line', () => {
  const all = mutantsOf('src/a.ts', `${CODE}  return c || d;\n`);
  const drawn = drawMutants(all, 7, 10);
  expect(drawn).toHaveLength(2);
  expect(drawMutants(all, 7, 10)).toEqual(drawn);
});

test('maps a source file, a script and an include to tests near them', async () => {
  const testsOf = await mapTests(join(import.meta.dirname, '../..'));
  expect(testsOf('src/domain/changes/decide.ts', 2)).toContain('test/unit/domain-decide.test.ts');
  expect(testsOf('src/store/commands/compare-epoch-4.lua', 3)).toContain('test/integration/epoch.test.ts');
  expect(testsOf('src/store/commands/include/plan.lua', 3)).toContain('test/integration/plan.test.ts');
});
