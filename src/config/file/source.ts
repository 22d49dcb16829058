import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { BROKEN_TEXT, isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type ConfigPath, type PlacedProblem, renderPath } from './errors.ts';
import { expandVariables, maskVariables, type Outside } from './expand.ts';

const TOO_DEEP = 'found YAML that is nested too deeply, expected a config';

/** Message for a repeated key. `rest` is the text from that key on; only the key's name is used. */
function describeRepeatedKey(rest: string): string {
  // Without a colon, or with digits, the key may be a secret that a slip put there.
  const key = /^([A-Za-z][A-Za-z-]{0,39})\s*:\s/.exec(rest)?.[1];
  return `found ${key === undefined ? 'a key' : `the key "${key}"`} again, expected each key once`;
}

/** Explains a YAML error in our own text: the parser's own messages quote the text, which may be a secret. */
function describeSyntaxError(error: YAMLError): string {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return 'found a tab before the text, expected spaces';
    case 'BAD_INDENT':
      return 'found text in an unexpected column, expected the keys or items of one section in the same column and brackets closed';
    case 'MISSING_CHAR':
      return 'found text that goes on where something is missing, expected a closing quote or bracket, a comma or a colon';
    case 'BAD_ALIAS':
      return 'found a YAML alias without a name, expected quotes around text that begins with "*"';
    case 'TAG_RESOLVE_FAILED':
      return 'found a YAML tag, expected quotes around text that begins with "!"';
    case 'BAD_SCALAR_START':
      return 'found a character that cannot begin a value, expected quotes around the text';
    case 'BAD_DQ_ESCAPE':
      return 'found a backslash before a character that has no escape, expected single quotes or a doubled backslash';
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'found a second key on one line, expected a new line or quotes around text with ": "';
    case 'MULTILINE_IMPLICIT_KEY':
      return 'found a key over several lines, expected "key: value" (is a colon missing above?)';
    case 'MULTIPLE_DOCS':
      return 'found a second YAML document (---), expected one';
    case 'NON_STRING_KEY':
      return 'found a key that is a list or a mapping, expected text';
    case 'RESOURCE_EXHAUSTION':
      return TOO_DEEP;
    default:
      return `found text that is no YAML (${error.code}), expected "key: value" lines, lists and quotes that are closed`;
  }
}

/** Storing such a text would change it, and the events would differ from the file. */
const BROKEN_MESSAGE = `found ${BROKEN_TEXT.found}, expected ${BROKEN_TEXT.expected}`;

/** Values of a YAML document. The maps' keys are rendered paths. */
type Values = {
  tree: JsonObject | null;
  problems: PlacedProblem[];
  offsets: Map<string, number>;
  keyOffsets: Map<string, number>;
  variables: Map<string, string[]>;
  outside: Set<string>;
};

function readValues(options: {
  document: Document.Parsed;
  unmask(part: string): string;
  outside: Outside;
}): Values {
  const { document, unmask } = options;
  const values: Values = {
    tree: null,
    problems: [],
    offsets: new Map(),
    keyOffsets: new Map(),
    variables: new Map(),
    outside: new Set(),
  };
  const targets = aliasTargets(document);
  const enclosing = new Set<Node>();
  let count = 0;
  let isTooLarge = false;

  function read(node: Node | null, path: ConfigPath): JsonValue {
    count += 1;
    const offset = node?.range?.[0];
    const place = renderPath(path);
    if (offset !== undefined && !values.offsets.has(place)) values.offsets.set(place, offset);
    const refuse = (message: string): null => {
      values.problems.push({ path, offset: offset ?? 0, message });
      return null;
    };
    if (node === null) return null;
    if (path.length > LIMITS.config.depth) return refuse(TOO_DEEP);
    if (isAlias(node)) {
      const target = targets.get(node);
      if (target === undefined) {
        return refuse(
          'found a YAML alias without an anchor, expected quotes around text that begins with "*"',
        );
      }
      if (enclosing.has(target)) return refuse('found a YAML alias inside its own anchor, expected a value');
      if (count > LIMITS.config.members) {
        if (isTooLarge) return null;
        isTooLarge = true;
        return refuse(`found more than ${LIMITS.config.members} values, expected fewer aliases`);
      }
      return read(target, path);
    }
    enclosing.add(node);
    const value = readNode(node, path);
    enclosing.delete(node);
    return value;
  }

  function readNode(node: Node, path: ConfigPath): JsonValue {
    if (isMap(node)) return readMapping(node, path);
    if (isSeq(node)) return node.items.map((item, index) => read(asNode(item), [...path, index]));
    const value = isScalar(node) ? node.value : null;
    if (typeof value === 'number') return exactNumber(value, isScalar(node) ? (node.source ?? '') : '');
    if (typeof value === 'boolean') return value;
    if (typeof value !== 'string') return null;
    if (value.length > LIMITS.config.textCharacters) {
      const message = `found a text of ${value.length} characters, expected at most ${LIMITS.config.textCharacters}`;
      values.problems.push({ path, offset: node.range?.[0] ?? 0, message });
      return null;
    }
    const { text, variables, outside, problems } = expandVariables(unmask(value), options.outside);
    for (const read of outside) values.outside.add(read);
    if (variables.length > 0) values.variables.set(renderPath(path), variables);
    const offset = node.range?.[0] ?? 0;
    values.problems.push(...problems.map((message) => ({ path, offset, message })));
    if (text.isWellFormed()) return text;
    values.problems.push({ path, offset, message: BROKEN_MESSAGE });
    return null;
  }

  function readMapping(node: YAMLMap, path: ConfigPath): JsonObject {
    const object: JsonObject = {};
    for (const pair of node.items) {
      const key = isScalar(pair.key) ? unmask(String(pair.key.value ?? '')) : '';
      const inner = [...path, key];
      const offset = (isScalar(pair.key) ? pair.key.range?.[0] : undefined) ?? node.range?.[0] ?? 0;
      if (key.includes('${')) {
        const message = 'found a variable in a key, expected a key that is written out';
        // The path omits the key: a slip may have put a secret there.
        values.problems.push({ path, offset, message });
      } else if (!key.isWellFormed()) {
        values.problems.push({ path, offset, message: BROKEN_MESSAGE });
      } else if (key === '' || key === '__proto__') {
        const message = `found the key ${JSON.stringify(key)}, expected another name`;
        values.problems.push({ path, offset, message });
      } else {
        values.keyOffsets.set(renderPath(inner), offset);
        if (asNode(pair.value) === null) values.offsets.set(renderPath(inner), offset);
        object[key] = read(asNode(pair.value), inner);
      }
    }
    return object;
  }

  const tree = read(document.contents, []);
  if (isJsonObject(tree)) return { ...values, tree };
  if (values.problems.length === 0) {
    const found = tree === null ? 'an empty file' : Array.isArray(tree) ? 'a list' : 'a single value';
    const message = `found ${found}, expected a mapping with the keys upstream, receivers and subscriptions`;
    values.problems.push({ path: [], offset: 0, message });
  }
  return values;
}

/** Resolves all aliases in one pass: the library's own resolution reads the whole document for each. */
function aliasTargets(document: Document.Parsed): Map<Alias, Node> {
  const targets = new Map<Alias, Node>();
  const anchors = new Map<string, Node>();
  visit(document, {
    Alias(_, alias) {
      const target = anchors.get(alias.source);
      if (target !== undefined) targets.set(alias, target);
    },
    Value(_, node) {
      if (node.anchor !== undefined) anchors.set(node.anchor, node);
    },
  });
  return targets;
}

/** A number that JavaScript represents exactly, else its text: no digit of an address without quotes may be lost. */
function exactNumber(value: number, source: string): number | string {
  const isHash = /^0x[0-9a-fA-F]{15,}$/.test(source);
  return isHash || (Number.isInteger(value) && !Number.isSafeInteger(value)) ? source : value;
}

/** The parser represents an absent value as null; in a parsed document everything else is a node. */
function asNode(value: unknown): Node | null {
  return isAlias(value) || isMap(value) || isSeq(value) || isScalar(value) ? value : null;
}

/** The parsed text of a config file: its values with variables expanded, and their places. */
export type ConfigSource = {
  /** Null when the text is no YAML mapping; then there is at least one problem. */
  tree: JsonObject | null;
  problems: PlacedProblem[];
  /** Variables used by the value at a path; empty for a literal value. */
  variablesAt(path: ConfigPath): string[];
  outside: string[];
  /** Offset of the value at a path, or of the value around it; of its key with `atKey`. */
  offsetOf(path: ConfigPath, options: { atKey: boolean }): number;
  /** Line and column, both from 1. */
  positionOf(offset: number): { line: number; column: number };
};

/** Reads YAML and expands `${…}` in its scalars, never in keys, so that a variable cannot change the structure. */
export function readSource(text: string, outside: Outside): ConfigSource {
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

type ParsedText = { values: Values | null; syntaxProblems: PlacedProblem[] };

function readDocument(
  document: Document.Parsed,
  { masked, ...rest }: { masked: string; unmask(part: string): string; outside: Outside },
): ParsedText {
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
  // A repeated key leaves a readable document; after an error the rest would be a guess.
  const values = syntaxErrors.length === 0 ? readValues({ document, ...rest }) : null;
  return { values, syntaxProblems: [...syntaxProblems, ...repeated].sort((a, b) => a.offset - b.offset) };
}

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

/** The parser, which recurses, limits the depth of brackets, but not of lists and mappings without them. */
function unlessTooDeep(text: string, read: () => ParsedText): ParsedText {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { values: null, syntaxProblems: [{ path: [], offset: deepestLine(text), message: TOO_DEEP }] };
  }
}

function deepestLine(text: string): number {
  let deepest = { offset: 0, depth: 0 };
  for (const match of text.matchAll(/^[ ?:[{-]*/gm)) {
    if (match[0].length > deepest.depth) deepest = { offset: match.index, depth: match[0].length };
  }
  return deepest.offset;
}

/** One slip causes several problems of the parser in a row. */
function firstOfEachLine(problems: PlacedProblem[], lineCounter: LineCounter): PlacedProblem[] {
  const lines = new Set<number>();
  return problems.filter(({ offset }) => {
    const { line } = lineCounter.linePos(offset);
    return !lines.has(line) && lines.add(line);
  });
}
