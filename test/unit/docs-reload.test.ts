import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { generatedFiles } from '../../scripts/generate.ts';
import { pages } from '../../scripts/sentences.ts';
import { configSchema } from '../../src/config/schema.ts';
import { logSchema } from '../../src/config/sections/process.ts';
import { serverSchema } from '../../src/config/sections/server.ts';
import { NEEDS_RESTART } from '../../src/daemon/config-changes.ts';
import { codeSpans } from '../support/markdown.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): Promise<string> => readFile(resolve(root, path), 'utf8');

const GENERATED = new Set((await generatedFiles()).map(({ name }) => name));
const PAGES = (await pages()).filter((path) => !GENERATED.has(path) && !path.startsWith('docs/decisions/'));

/** All keys of a config, with those of `server` and `log` one by one. */
const KEYS = Object.keys(configSchema.shape).flatMap((section) => {
  if (section === 'server') return Object.keys(serverSchema.shape).map((key) => `server.${key}`);
  return section === 'log' ? Object.keys(logSchema.shape).map((key) => `log.${key}`) : [section];
});

/** Sentences that demand a restart, or imply one. */
const DEMANDS =
  /(?:^|[:;] )restart(?: it| the (?:daemon|process))?(?:[.,;]|$)|\b(?:take|takes|need|needs|until|after) (?:a|the|the next) (?:re)?start\b|\b(?:is|are) (?:only )?read (?:only )?at (?:the )?start/i;

/** Sentences about a process that hangs or Redis, or a refusal that names the key itself: no config is changed. */
const OTHERS = [/^`grep |; restart$/, /^If the log names a key that needs a restart,/];

function sentencesOf(text: string): string[] {
  return text
    .replaceAll(/^(`{3,})[\s\S]*?^\1$/gm, '')
    .replaceAll(/(?<=^|\n\n)(?: {4}.*\n)+/g, '')
    .split(/\n\n|\n(?=[|#-]|\d+\.)/)
    .flatMap((block) => block.replaceAll(/\s+/g, ' ').split(/(?<=[.!?])\s+(?=[A-Z`])/));
}

/** True when a sentence is about a key that only a restart changes, or about a variable of the environment. */
function mayDemand(sentence: string): boolean {
  const spans = codeSpans(sentence);
  return /\bvariable\b/.test(sentence) || spans.some((span) => NEEDS_RESTART.includes(span));
}

test.each(PAGES)('%s demands a restart for nothing that a reload changes', async (path) => {
  const demands = sentencesOf(await read(path)).filter((sentence) => DEMANDS.test(sentence));
  const untrue = demands.filter(
    (sentence) => !mayDemand(sentence) && !OTHERS.some((one) => one.test(sentence)),
  );
  // A sentence about a file that is read at the start and again contains "again".
  expect(untrue.filter((sentence) => !/\bagain\b/.test(sentence))).toEqual([]);
});

describe('docs/changing.md', async () => {
  const rows = (await read('docs/changing.md')).split('\n').filter((line) => line.startsWith('| '));
  const cells = rows.map((row) => row.split(' | '));
  const keysOf = (chosen: readonly string[][]): Set<string> =>
    new Set(chosen.flatMap(([change = '']) => codeSpans(change)));
  const restarts = cells.filter(([, effect = '']) => effect.startsWith('take a restart'));

  test('names each key that needs a restart, and no other', () => {
    expect([...keysOf(restarts)].sort()).toEqual([...NEEDS_RESTART].sort());
  });

  test('names each key that a reload changes', () => {
    const named = keysOf(cells.filter((row) => !restarts.includes(row)));
    // Their entries have rows of their own, by kind of change.
    const entries = ['receivers', 'subscriptions'];
    const changeable = KEYS.filter((key) => !NEEDS_RESTART.includes(key) && !entries.includes(key));
    expect(changeable.filter((key) => !named.has(key))).toEqual([]);
  });
});
