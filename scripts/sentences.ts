import { readdir, readFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');

/** Size of a page, its words, and the words of its sentences. */
export type PageMeasure = { bytes: number; words: number; prose: Sentences; tables: Sentences };

/** Number of sentences, average words of each, and the longest one. */
export type Sentences = { count: number; average: number; longest: string };

/** A cell of a table with fewer words is a label, not a sentence. */
const LABEL_WORDS = 5;

/**
 * Measures a page of Markdown, prose and tables apart, without headings and code. A sentence ends at `.`, `?` or its block's
 * end.
 */
export function measure(markdown: string): PageMeasure {
  const blocks = proseOf(markdown);
  const words = blocks.reduce((sum, { text }) => sum + wordsOf(text), 0);
  const prose = blocks.filter(({ isCell }) => !isCell);
  const cells = blocks.filter(({ text, isCell }) => isCell && wordsOf(text) >= LABEL_WORDS);
  return {
    bytes: Buffer.byteLength(markdown),
    words,
    prose: sentencesOf(prose.map(({ text }) => text)),
    tables: sentencesOf(cells.map(({ text }) => text)),
  };
}

function sentencesOf(texts: readonly string[]): Sentences {
  const sentences = texts
    .flatMap((text) => text.split(/(?<=[.!?][)"*_]*)\s+/u))
    .filter((sentence) => wordsOf(sentence) > 0);
  const words = sentences.reduce((sum, sentence) => sum + wordsOf(sentence), 0);
  const longest = sentences.reduce((a, b) => (wordsOf(b) > wordsOf(a) ? b : a), '');
  const count = sentences.length;
  return { count, average: count === 0 ? 0 : words / count, longest };
}

type Prose = { text: string; isCell: boolean };

function proseOf(markdown: string): Prose[] {
  const withoutCode = markdown
    .replaceAll(/^(`{3,})[\s\S]*?^\1$/gm, '\n')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .replaceAll(/(?:^|\n\n)(?: {4}.*\n?)+/g, '\n\n')
    .replaceAll(/`+([^`\n]+)`+/g, (_, code: string) => code.replaceAll('.', '·'))
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/<[^>\n]+>/g, '');
  const blocks: Prose[] = [];
  let open: string[] = [];
  const close = (): void => {
    if (open.length > 0) blocks.push({ text: open.join(' '), isCell: false });
    open = [];
  };
  for (const line of withoutCode.split('\n')) {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) close();
    else if (text.startsWith('|')) {
      close();
      const cells = /^[|\s:-]+$/.test(text) ? [] : text.slice(1, -1).split(/(?<!\\)\|/);
      blocks.push(...cells.map((cell) => ({ text: cell.trim(), isCell: true })));
    } else {
      const item = /^(?:[-*]|\d+\.)\s+(.*)$/.exec(text);
      if (item) close();
      open.push(item?.[1] ?? text);
    }
  }
  close();
  return blocks;
}

function wordsOf(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\d]/u.test(word)).length;
}

/** Lists the pages for people: README, and Markdown of docs and of the examples. Paths within the repository. */
export async function pages(): Promise<string[]> {
  const folders = ['docs', 'examples'];
  const found = await Promise.all(
    folders.map((folder) => readdir(resolve(root, folder), { recursive: true, withFileTypes: true })),
  );
  const files = found
    .flat()
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
    .map((entry) => relative(root, resolve(entry.parentPath, entry.name)));
  return ['README.md', ...files.sort()];
}

if (import.meta.main) {
  console.log(
    'bytes  words  | prose: sentences  words each  most | tables: sentences  words each  most | page',
  );
  for (const page of await pages()) {
    const { bytes, words, prose, tables } = measure(await readFile(resolve(root, page), 'utf8'));
    const cells = [prose, tables].map(({ count, average, longest }) =>
      [String(count), average.toFixed(1), String(wordsOf(longest))].map((text) => text.padStart(5)).join(' '),
    );
    console.log([String(bytes).padStart(6), String(words).padStart(6), ...cells, page].join(' | '));
    if (process.argv.includes('--longest')) console.log(`  ${prose.longest}\n  ${tables.longest}`);
  }
}
