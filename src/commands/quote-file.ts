import { createReadStream } from 'node:fs';
import { type Endless, whyEndless } from '../config/file/file-size.ts';
import type { JsonValue } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { JsonLimitError, parseJson } from '../domain/parse-json.ts';

const EXPECTED = 'expected a quote as POST /v1/quotes answered it, or - for stdin';

/** Reads a quote that somebody has in a file (`-`: on stdin) as JSON. Throws an Error that names the file. */
export async function readQuoteFile(file: string): Promise<JsonValue> {
  const json = await readBounded(file);
  try {
    return parseJson(json, { limits: LIMITS.quoteFile });
  } catch (error) {
    if (error instanceof JsonLimitError) throw new Error(`${file}: found ${error.message}`);
    throw new Error(
      `${file}: found ${json.trim() === '' ? 'nothing' : 'text that is not JSON'}, ${EXPECTED}`,
    );
  }
}

/** The text of a file, or of stdin until it ends. No more is read than a quote may have. */
async function readBounded(file: string): Promise<string> {
  const { bytes: most } = LIMITS.quoteFile;
  const endless = file === '-' ? null : whyEndless(file, most);
  if (endless !== null) throw tooLong(file, endless);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
      chunks.push(Buffer.from(chunk));
      bytes += chunk.length;
      if (bytes > most) break;
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(
      `${file}: found ${WORDS.get(code) ?? `a file that cannot be read (${code})`}, ${EXPECTED}`,
    );
  }
  if (bytes > most) {
    throw tooLong(file, { found: `more than ${most} bytes`, expected: `at most ${most} bytes` });
  }
  return Buffer.concat(chunks).toString('utf8');
}

function tooLong(file: string, { found, expected }: Pick<Endless, 'found' | 'expected'>): Error {
  return new Error(
    `${file}: found ${found}, expected ${expected} with a quote as POST /v1/quotes answered it`,
  );
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file'],
  ['EISDIR', 'a folder'],
]);
