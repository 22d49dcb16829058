import { expect, test } from 'vitest';
import { aboveCeilings, COUNTS, type Source } from '../../scripts/counts.ts';

const NOTHING = Object.fromEntries(COUNTS.map(({ name }) => [name, 0]));
const SIZES = { ...NOTHING, 'files of src (TypeScript)': 9, 'lines of src (TypeScript)': 999 };

test.each<[string, Source[], string]>([
  ['a retired word in prose', [{ path: 'docs/a.md', text: 'who was told' }], 'word: told: found 1'],
  ['a retired word in a name', [{ path: 'src/a.ts', text: 'let whoWasTold = 1;' }], 'word: told: found 1'],
  [
    'a doc comment without a noun or verb',
    [{ path: 'src/a.ts', text: '/** What it is. */' }],
    'doc comments that open with',
  ],
  [
    'a type name twice in a program',
    [
      { path: 'sandbox/a.ts', text: 'export type Place = 1;' },
      { path: 'sandbox/b.ts', text: 'type Place = 2;' },
    ],
    'type names that occur twice in a program: found 1',
  ],
  [
    'an argument by position',
    [{ path: 'src/a.lua', text: 'local a = ARGV[1]' }],
    'arguments of scripts by position',
  ],
  [
    'a derived type',
    [{ path: 'src/a.ts', text: "type A = Pick<B, 'c'>;" }],
    'uses of Pick and Omit: found 1',
  ],
  [
    'a small file with a single importer',
    [
      { path: 'src/a.ts', text: 'export const one = 1;\n' },
      { path: 'src/b/c.ts', text: "import { one } from '../a.ts';\n" },
    ],
    'small files with a single importer: found 1',
  ],
])('%s is above its ceiling', (_name, sources, found) => {
  expect(aboveCeilings(sources, SIZES)).toContain(found);
});

test('a type name in two programs is no duplicate', () => {
  const sources = [
    { path: 'sandbox/a.ts', text: 'type Place = 1;' },
    { path: 'demo/b.ts', text: 'type Place = 2;' },
  ];
  expect(aboveCeilings(sources, SIZES)).toBe('');
});

test('an exception is not counted, and its word elsewhere is', () => {
  const text = 'as far as is known, keepAlive, an optional part';
  expect(aboveCeilings([{ path: 'src/a.ts', text }], SIZES)).toBe('');
  expect(aboveCeilings([{ path: 'src/a.ts', text: 'const known = 1;' }], SIZES)).toContain('word: known');
  expect(aboveCeilings([{ path: 'src/store/a.ts', text: 'let root;' }], SIZES)).toContain('word: root');
  expect(aboveCeilings([{ path: 'scripts/a.ts', text: 'let root;' }], SIZES)).toBe('');
});

test('a count without a ceiling is named', () => {
  expect(aboveCeilings([], {})).toContain('word: told: found 0, and no ceiling in scripts/ceilings.json');
});
