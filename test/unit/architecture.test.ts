import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type FlowStep, flows, readFlows } from '../../scripts/architecture.ts';
import { FLOW } from '../../scripts/flow.ts';
import { Keys } from '../../src/store/keys.ts';
import { codeBlocks, codeSpans } from '../support/markdown.ts';

const FOLDER = resolve(import.meta.dirname, '../..');
const PAGE = readFileSync(join(FOLDER, 'docs/architecture.md'), 'utf8');
const HEAD_LINES = 140;

const SOURCES = new Map(
  globSync('src/**/*.{ts,lua}', { cwd: FOLDER }).map((path) => [
    path,
    readFileSync(join(FOLDER, path), 'utf8'),
  ]),
);

function importsOf(path: string): string[] {
  return [...(SOURCES.get(path) ?? '').matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(
    ([, target = '']) => normalize(join(dirname(path), target)),
  );
}

function section(title: string): string {
  const [, text = ''] = new RegExp(`^## ${title}$([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, 'm').exec(PAGE) ?? [];
  return text;
}

function rows(title: string): string[][] {
  return section(title)
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) => line.split('|').slice(1, -1));
}

/** The one file that a step names; a script is named without its number of keys. */
function fileOf(path: string): string {
  if (!path.includes('*')) return path;
  const found = globSync(path, { cwd: FOLDER });
  return found.length === 1 ? (found[0] ?? path) : path;
}

const STARTED = reachableFrom('src/daemon/daemon.ts');

function reachableFrom(start: string): Set<string> {
  const found = new Set([start]);
  for (const path of found) for (const target of importsOf(path)) found.add(target);
  return found;
}

/** True when a TypeScript file runs a script: its name is the name of the command. */
function runsScript(path: string, script: string): boolean {
  const [, name = ''] = /([^/]+?)(?:-\d+)?\.lua$/.exec(script) ?? [];
  const camel = name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  const pascal = `${camel.slice(0, 1).toUpperCase()}${camel.slice(1)}`;
  return new RegExp(`\\b(?:iw${pascal}|${camel}|'${name}')\\b`).test(SOURCES.get(path) ?? '');
}

/** True when a step is reached from an earlier one of its part. */
function isReached(step: FlowStep, before: readonly string[]): boolean {
  const path = fileOf(step.path);
  if (before.length === 0) return STARTED.has(path);
  if (path.endsWith('.lua')) return before.some((one) => runsScript(one, path));
  const { behind } = step;
  if (behind === null) return before.some((one) => importsOf(one).includes(path));
  return before.includes(behind) && importsOf(path).includes(behind);
}

describe('docs/architecture.md', () => {
  test('names only files that exist', () => {
    const named = codeSpans(PAGE).filter((span) => /^(?:src|scripts|sandbox|demo)\/[\w./*-]+$/.test(span));
    expect(named.length).toBeGreaterThan(80);
    const missing = named.filter((span) =>
      span.includes('*') ? fileOf(span) === span : !existsSync(join(FOLDER, span)),
    );
    expect(missing).toEqual([]);
  });

  test.each(flows())('reaches each step of "$title" from one before it', ({ steps }) => {
    expect(steps.flat().length).toBeGreaterThan(5);
    const lost = steps.flatMap((part) =>
      part
        .filter((step, index) => {
          const before = part.slice(0, index).map(({ path }) => fileOf(path));
          return !isReached(step, before);
        })
        .map(({ path }) => path),
    );
    expect(lost).toEqual([]);
  });

  test('names state machines whose table is at the head of the file', () => {
    const wrong = rows('State machines').flatMap(([, states = '', place = '']) => {
      const [path = ''] = codeSpans(place);
      const head = (SOURCES.get(path) ?? '').split('\n').slice(0, HEAD_LINES).join('\n');
      return codeSpans(states)
        .filter((state) => !new RegExp(`\\b${state}\\b`).test(head))
        .map((state) => `${path}: ${state}`);
    });
    expect(wrong).toEqual([]);
  });

  test('names every file with a table of states', () => {
    const named = rows('State machines').flatMap(([, , place = '']) => codeSpans(place));
    const tables = [...SOURCES].filter(([, text]) =>
      text
        .split('\n')
        .slice(0, HEAD_LINES)
        .some((line) => /^(?: \*|\/\/)?\s+\|?\s*(?:state|place)\s+\|/i.test(line)),
    );
    expect(tables.length).toBeGreaterThan(8);
    expect(tables.map(([path]) => path).filter((path) => !named.includes(path))).toEqual([]);
  });

  test('names every key of Redis, and no other', () => {
    const named = rows('Redis keys').flatMap(([, keys = '']) => codeSpans(keys));
    const shape = (key: string): string => key.replaceAll(/(?<=:|^)[A-Z]+(?=:|$)/g, '*');
    expect(named.map(shape).sort()).toEqual(allKeys().sort());
  });

  test('has the levels of scripts/flow.ts', () => {
    const [levels] = codeBlocks(section('Imports')).filter(({ language }) => language === 'text');
    expect(levels?.code.trim().split('\n')).toEqual(FLOW.map((level) => level.join(' ')));
  });
});

/** Every key without the prefix, with `*` for a parameter. */
function allKeys(): string[] {
  const keys = new Keys('intentwatch');
  const methods = Object.entries(Object.getOwnPropertyDescriptors(Keys.prototype))
    .filter(([name]) => name !== 'constructor')
    .map(([, { value }]) => value.call(keys, '*', '*'));
  const start = '{intentwatch}:';
  return [...methods, ...Object.values(keys)]
    .map(String)
    .filter((key) => key.startsWith(start))
    .map((key) => key.slice(start.length));
}

test('a list of a flow is read with its parts', () => {
  const page = [
    '## Flows',
    '### One',
    '1. `src/a.ts` begins',
    '2. `src/b.ts` (behind `src/a.ts`) goes on',
    'Then:',
    '1. `src/c.ts` begins anew',
    '## Else',
  ].join('\n');
  expect(readFlows(page)).toEqual([
    {
      title: 'One',
      steps: [
        [
          { path: 'src/a.ts', behind: null },
          { path: 'src/b.ts', behind: 'src/a.ts' },
        ],
        [{ path: 'src/c.ts', behind: null }],
      ],
    },
  ]);
});
