import { type Document, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import type { JsonObject } from '../../domain/json.ts';
import { type ConfigPath, type PlacedProblem, renderPath } from './errors.ts';
import { maskVariables, type Outside } from './expand.ts';
import { describeRepeatedKey, describeSyntaxError, TOO_DEEP } from './syntax-errors.ts';
import { readValues, type Values } from './values.ts';

/** A config file's text, read: its values with variables expanded, and where each of them stands. */
export type Source = {
  /** Null when the text is no YAML mapping; then there is at least one problem. */
  tree: JsonObject | null;
  problems: PlacedProblem[];
  /** The names of the variables that the value at a path came from; none for a value that was written out. */
  variablesAt(path: ConfigPath): string[];
  /** Whatever came from outside the file. */
  outside: string[];
  /** The offset of the value at a path, or of what encloses it; of its key if `atKey` is set. */
  offsetOf(path: ConfigPath, options: { atKey: boolean }): number;
  /** Line and column, both from 1. */
  positionOf(offset: number): { line: number; column: number };
};

/** Reads YAML and expands `${…}` in its scalars, never in keys, so that a variable cannot change the structure. */
export function readSource(text: string, outside: Outside): Source {
  const lineCounter = new LineCounter();
  const { masked, unmask } = maskVariables(text);
  const { values, syntaxProblems } = unlessTooDeep(masked, () => {
    const document = parseDocument(masked, {
      lineCounter,
      prettyErrors: false,
      stringKeys: true,
      uniqueKeys: false, // found by us: the parser compares each key with all before it
    });
    return readDocument(document, { masked, unmask, outside });
  });
  return {
    tree: values?.tree ?? null,
    problems: [...firstOfEachLine(syntaxProblems, lineCounter), ...(values?.problems ?? [])],
    variablesAt: (path) => values?.variables.get(renderPath(path)) ?? [],
    outside: [...(values?.outside ?? [])],
    offsetOf: (path, { atKey }) => {
      const own = (atKey ? values?.keyOffsets : values?.offsets)?.get(renderPath(path));
      if (own !== undefined) return own;
      for (let length = path.length - 1; length >= 0; length -= 1) {
        const outer = values?.offsets.get(renderPath(path.slice(0, length)));
        if (outer !== undefined) return outer;
      }
      return 0;
    },
    positionOf: (offset) => {
      const { line, col } = lineCounter.linePos(offset);
      return { line: Math.max(line, 1), column: Math.max(col, 1) };
    },
  };
}

type Read = { values: Values | null; syntaxProblems: PlacedProblem[] };

function readDocument(
  document: Document.Parsed,
  { masked, ...parts }: { masked: string; unmask(part: string): string; outside: Outside },
): Read {
  const syntaxErrors = [...document.errors, ...document.warnings];
  const syntaxProblems = syntaxErrors.map((error) => ({
    path: [],
    offset: error.pos[0],
    message: describeSyntaxError(error),
  }));
  const repeated = repeatedKeys(document).map((offset) => ({
    path: [],
    offset,
    message: describeRepeatedKey(masked.slice(offset)),
  }));
  // A repeated key leaves a readable document; after an error the rest would be guesswork.
  const values = syntaxErrors.length === 0 ? readValues({ document, ...parts }) : null;
  return { values, syntaxProblems: [...syntaxProblems, ...repeated].sort((a, b) => a.offset - b.offset) };
}

/** The place where keys begin that their mapping had before. */
function repeatedKeys(document: Document.Parsed): number[] {
  const offsets: number[] = [];
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) offsets.push(key.range?.[0] ?? 0);
        seen.add(key.value);
      }
    },
  });
  return offsets;
}

/** The parser, which recurses, bounds how deep brackets go, but not lists and mappings without them. */
function unlessTooDeep(text: string, read: () => Read): Read {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { values: null, syntaxProblems: [{ path: [], offset: deepestLine(text), message: TOO_DEEP }] };
  }
}

/** The place where the line begins that is indented furthest, or opens most. */
function deepestLine(text: string): number {
  let deepest = { offset: 0, depth: 0 };
  for (const match of text.matchAll(/^[ ?:[{-]*/gm)) {
    if (match[0].length > deepest.depth) deepest = { offset: match.index, depth: match[0].length };
  }
  return deepest.offset;
}

/** One slip makes the parser complain several times in a row. */
function firstOfEachLine(problems: PlacedProblem[], lineCounter: LineCounter): PlacedProblem[] {
  const lines = new Set<number>();
  return problems.filter(({ offset }) => {
    const { line } = lineCounter.linePos(offset);
    return !lines.has(line) && lines.add(line);
  });
}
