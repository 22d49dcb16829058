import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Writes each part of the evidence into a file of its own, one entry a line, in a new folder. Returns the folder. */
export async function storeEvidence(
  seed: number,
  files: Record<string, readonly object[] | readonly string[]>,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `intentwatch-seed-${seed}-`));
  for (const [name, entries] of Object.entries(files)) {
    const lines = entries.map((entry) => `${JSON.stringify(entry, bigintsAsText)}\n`);
    await writeFile(join(folder, `${name}.jsonl`), lines.join(''));
  }
  return folder;
}

function bigintsAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
