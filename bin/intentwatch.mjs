#!/usr/bin/env node
// The program `intentwatch`. Plain JavaScript that any Node reads: one that is too old for the rest is reported so in one
// sentence, where it would print the stack of a syntax error.
import { existsSync, readFileSync, statSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const packageFile = new URL('../package.json', import.meta.url);
/** There in a clone, whose TypeScript Node runs as it is. The package has JavaScript made from it instead. */
const source = new URL('../src/main.ts', import.meta.url);
const modules = new URL('../node_modules/', import.meta.url);

/**
 * Reuses the JavaScript that Node makes from a clone's TypeScript: the conversion costs more time and memory than the rest of
 * a start. A clone of another user gets no files, which its owner could not remove. Where the folder cannot be written, Node
 * converts at each start. The package has nothing to convert, and writes nothing.
 */
function reuseCompiled() {
  if (statSync(modules, { throwIfNoEntry: false })?.uid !== process.getuid?.()) return;
  module.enableCompileCache(fileURLToPath(new URL('.cache/intentwatch', modules)));
}

const found = process.version;
const oldest = Number(/\d+/.exec(JSON.parse(readFileSync(packageFile, 'utf8')).engines.node));
const isClone = existsSync(source);

if (Number(/\d+/.exec(found)) < oldest) {
  const advice = isClone
    ? 'type, in the clone: ./intentwatch --help'
    : 'install one (https://nodejs.org/en/download), or type: npx --yes --package node@26 intentwatch --help';
  process.stderr.write(`intentwatch: found Node ${found}, expected ${oldest} or newer; ${advice}\n`);
  process.exitCode = 1;
} else {
  if (isClone) reuseCompiled();
  await import(isClone ? source.href : new URL('../dist/src/main.js', import.meta.url).href);
}
