import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { JsonValue } from '../domain/json.ts';
import { parseJson } from '../domain/parse-json.ts';

const EXPECTED = 'expected a quote as POST /v1/quotes answered it, or - for stdin';

/** Reads a quote that somebody has in a file (`-`: on stdin) as JSON. Throws an Error that names the file. */
export async function readQuoteFile(file: string): Promise<JsonValue> {
  const json = file === '-' ? await text(process.stdin) : await readText(file);
  try {
    return parseJson(json);
  } catch {
    throw new Error(
      `${file}: found ${json.trim() === '' ? 'nothing' : 'text that is not JSON'}, ${EXPECTED}`,
    );
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(
      `${file}: found ${WORDS.get(code) ?? `a file that cannot be read (${code})`}, ${EXPECTED}`,
    );
  }
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file'],
  ['EISDIR', 'a folder'],
]);
