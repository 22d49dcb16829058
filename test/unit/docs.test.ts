import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { generatedFiles } from '../../scripts/generate.ts';
import { measure, pages } from '../../scripts/sentences.ts';
import { loadConfig } from '../../src/config/file/load.ts';
import { DEFAULT_TABLE } from '../../src/config/sections/postgres-receiver.ts';
import { DEFINITIONS } from '../../src/metrics/instruments.ts';
import { commandLines, commands, complaint } from '../support/command-lines.ts';
import { anchors, codeBlocks, codeSpans, links } from '../support/markdown.ts';
import { filledIn, isTyped, pageBlocks } from '../support/page-blocks.ts';
import { loadShown, PAGE_ENV } from '../support/shown-config.ts';

const FOLDER = resolve(import.meta.dirname, '../..');
const read = (path: string): Promise<string> => readFile(resolve(FOLDER, path), 'utf8');

const PAGES = await Promise.all((await pages()).map(async (path) => ({ path, text: await read(path) })));
const GENERATED = new Set((await generatedFiles()).map(({ name }) => name));
const README = PAGES.find(({ path }) => path === 'README.md')?.text ?? '';

const README_BYTES = 9_000;
const WORDS_EACH = 20;

describe('README', () => {
  test(`has at most ${README_BYTES} bytes`, () => {
    expect(Buffer.byteLength(README)).toBeLessThanOrEqual(README_BYTES);
  });

  test('leads to every page of docs', () => {
    const linked = new Set(links(README).map(({ path }) => path));
    const docs = PAGES.map(({ path }) => path).filter((path) => /^docs\/[^/]+\.md$/.test(path));
    expect(docs.filter((path) => !linked.has(path))).toEqual([]);
  });

  test('shows an event that is the one of the catalogue, shortened', async () => {
    const [shown = ''] = codesIn(README, 'json');
    const whole: unknown = JSON.parse(await read('docs/events/intent.filled.json'));
    expect(whole).toMatchObject(JSON.parse(shown));
  });

  test('shows the program that verifies with a library', async () => {
    expect(codesIn(README, 'ts')).toEqual([await read('examples/verify-webhook/standard-webhooks.ts')]);
    // `npm init` writes "type": "commonjs": there only .mts is a module.
    expect(README).toContain('here as `hooks.mts`');
  });
});

function tablesOf(text: string): string[][] {
  const lines = text.replaceAll(/^ *(`{3,})[\s\S]*?^ *\1$/gm, '').split('\n');
  return lines.reduce<string[][]>((tables, line, index) => {
    if (!line.startsWith('|')) return tables;
    if (lines[index - 1]?.startsWith('|')) tables.at(-1)?.push(line);
    else tables.push([line]);
    return tables;
  }, []);
}

function codesIn(text: string, language: string): string[] {
  return codeBlocks(text)
    .filter((block) => block.language === language)
    .map(({ code }) => code);
}

describe.each(PAGES)('$path', ({ path, text }) => {
  test('links to nothing that is not there', async () => {
    const broken: string[] = [];
    for (const { path: to, anchor } of links(text)) {
      const target = to === '' ? resolve(FOLDER, path) : resolve(FOLDER, dirname(path), to);
      if (!existsSync(target)) broken.push(to);
      else if (anchor !== '' && !anchors(await readFile(target, 'utf8')).includes(anchor)) {
        broken.push(`${to}#${anchor}`);
      }
    }
    expect(broken).toEqual([]);
  });

  test('names no file of the repository that is not there', () => {
    const named = codeSpans(text).filter((span) =>
      /^(src|test|config|docs|examples|scripts|bench)\/[\w./-]+$/.test(span),
    );
    expect(named.filter((file) => !existsSync(resolve(FOLDER, file)))).toEqual([]);
  });

  test('names no metric, and no table, that does not exist', () => {
    const names: string[] = [...Object.values(DEFINITIONS).map(({ name }) => name), DEFAULT_TABLE];
    const found = codeSpans(text).filter((span) => /^intentwatch_[a-z_]+$/.test(span));
    expect(found.filter((name) => !names.includes(name))).toEqual([]);
  });

  test('shows commands that exist, with flags that they have', async () => {
    const wrong = await Promise.all(
      commandLines(text).map(async (line) => complaint(line, await commands())),
    );
    expect(wrong.filter((one) => one !== '')).toEqual([]);
  });

  test('shows YAML that the daemon takes', async () => {
    for (const { language, code, exception } of pageBlocks(text)) {
      if (language !== 'yaml') continue;
      // Other YAML than the daemon's only has to parse.
      if (exception !== null) expect(parse(code)).toBeDefined();
      else await expect(loadShown(code), code).resolves.toBeDefined();
    }
  });

  test('names the language of each block', () => {
    const blocks = pageBlocks(text);
    const languages = ['sh', 'console', 'text', 'yaml', 'json', 'ts', 'sql', 'jsonnet', 'mermaid'];
    expect(blocks.filter(({ language }) => !languages.includes(language))).toEqual([]);
    expect(codeBlocks(text).length).toBe(blocks.length);
  });

  test('shows commands that have no gaps but for variables that the reader fills in', () => {
    const gaps = pageBlocks(text)
      .filter((block) => isTyped(block) && block.exception === null && filledIn(block).length === 0)
      .flatMap(({ language, code }) =>
        code.split('\n').filter((line) => language === 'sh' || line.startsWith('$ ')),
      )
      .filter((line) => line.replace(/ # .*$/, '').includes('…'));
    expect(gaps).toEqual([]);
  });

  test('has tables whose rows have the columns of their head', () => {
    const columns = (row: string): number => row.split(/(?<!\\)\|/).length;
    const wrong = tablesOf(text).flatMap(([head = '', ...rows]) =>
      rows.filter((row) => columns(row) !== columns(head)),
    );
    expect(wrong).toEqual([]);
  });

  test('shows JSON that fits the schema of events', async () => {
    const schema = z.fromJSONSchema(JSON.parse(await read('docs/events/schema.json')));
    for (const json of codesIn(text, 'json')) {
      expect(schema.safeParse(JSON.parse(json)).error, json).toBeUndefined();
    }
  });

  if (!GENERATED.has(path)) {
    test(`has sentences of less than ${WORDS_EACH} words on average`, () => {
      const { prose, tables } = measure(text);
      expect(prose.average).toBeLessThan(WORDS_EACH);
      expect(tables.average).toBeLessThan(WORDS_EACH);
    });
  }
});

test('docs/commands.md shows every command', async () => {
  const names = [...(await commands()).keys()];
  expect(names).toContain('verify-quote');
  const text = await read('docs/commands.md');
  expect(names.filter((name) => !text.includes(`\`intentwatch ${name}`))).toEqual([]);
});

test.each([
  'examples/first-webhook/intentwatch.yaml',
  'examples/round-trip/intentwatch.yaml',
])('%s is a config that the daemon takes', async (file) => {
  await expect(loadConfig(resolve(FOLDER, file), PAGE_ENV)).resolves.toBeDefined();
});

test('no title of a page is a question', () => {
  const titles = PAGES.map(({ text }) => /^# (.+)$/m.exec(text)?.[1] ?? '');
  expect(titles.filter((title) => title.endsWith('?') || title === '')).toEqual([]);
});
