import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { z } from 'zod';
import { COMMANDS } from '../../src/commands/commands.ts';
import { codeBlocks, codeSpans } from './markdown.ts';
import { consoleOf } from './page-blocks.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): Promise<string> => readFile(resolve(root, path), 'utf8');

/** The commands of the program by their names. */
export async function commands(): Promise<ReadonlyMap<string, Command>> {
  const loaded = Object.entries(COMMANDS).map(
    async ([name, { load }]): Promise<[string, Command]> => [name, await load()],
  );
  return new Map(await Promise.all(loaded));
}

/** The lines of a page that a reader types: in blocks of code, and whole commands within sentences. */
export function commandLines(text: string): string[] {
  const lines = codeBlocks(text)
    .filter(({ language }) => language === 'sh' || language === 'console')
    .flatMap(({ language, code }) => {
      const lines = code.replaceAll(/\\\n\s*/g, ' ').split('\n');
      return language === 'sh' ? lines : consoleOf(lines.join('\n')).commands;
    });
  const typed = lines.map((line) => line.trim().replace(/ +# .*$/, ''));
  return [...typed, ...codeSpans(text)]
    .map((line) => line.replace(/^\.\//, ''))
    .filter((line) => /^(intentwatch|npm|node) /.test(line));
}

/** The error in a command line, or '' where there is none. */
export async function complaint(line: string, commands: ReadonlyMap<string, Command>): Promise<string> {
  const [program = '', ...words] = line.replace(/ &$/, '').split(' ');
  if (program === 'npm') return npmComplaint(line, words);
  if (program === 'node') return nodeComplaint(line, words);
  const [name = '', ...rest] = words;
  // `intentwatch COMMAND --help` means any of them; the program itself has two flags.
  if (name === 'COMMAND' || (rest.length === 0 && /^--(help|version)$/.test(name))) return '';
  const command = commands.get(name);
  if (command === undefined) return `${line}: found no command ${name}`;
  const inner = command.commands.find((one) => one.name() === rest[0]);
  const flags = [command, ...(inner ? [inner] : [])].flatMap(({ options }) =>
    options.map(({ long }) => long),
  );
  const unknown = rest.find((word) => word.startsWith('--') && word !== '--help' && !flags.includes(word));
  return unknown === undefined ? '' : `${line}: found no flag ${unknown}`;
}

async function npmComplaint(line: string, [verb = '', script = '']: string[]): Promise<string> {
  const { scripts } = z
    .object({ scripts: z.record(z.string(), z.string()) })
    .parse(JSON.parse(await read('package.json')));
  if (verb === 'run' || verb === 'test' || verb === 'start') {
    const named = verb === 'run' ? script : verb;
    if (scripts[named] === undefined) return `${line}: found no script ${named}`;
    const [, bench] = /^npm run bench -- ([a-z]+)/.exec(line) ?? [];
    return bench === undefined || existsSync(resolve(root, 'bench', `${bench}.ts`))
      ? ''
      : `${line}: found no benchmark`;
  }
  return '';
}

async function nodeComplaint(line: string, [file = '']: string[]): Promise<string> {
  const places = ['', 'examples/verify-webhook'].map((folder) => resolve(root, folder, file));
  return places.some((place) => existsSync(place)) ? '' : `${line}: found no ${file}`;
}
