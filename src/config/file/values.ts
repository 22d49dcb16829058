import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  visit,
  type YAMLMap,
} from 'yaml';
import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { BROKEN_TEXT } from '../../domain/parse-json.ts';
import { type ConfigPath, type PlacedProblem, renderPath } from './errors.ts';
import { expandVariables, type Outside } from './expand.ts';
import { TOO_DEEP } from './syntax-errors.ts';

/** Storing such a text would change it, and the events would carry another one than the file. */
const BROKEN_MESSAGE = `found ${BROKEN_TEXT.found}, expected ${BROKEN_TEXT.expected}`;

/** A YAML document's values. The maps' keys are rendered paths. */
export type Values = {
  /** Null when the document is no mapping. */
  tree: JsonObject | null;
  problems: PlacedProblem[];
  offsets: Map<string, number>;
  keyOffsets: Map<string, number>;
  variables: Map<string, string[]>;
  /** The values of all variables and files. */
  outside: Set<string>;
};

/** Reads a document that has no syntax errors, with the variables in its scalars expanded. */
export function readValues(options: {
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
    for (const taken of outside) values.outside.add(taken);
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
        // The key is not in the path: a slip makes one of a secret.
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

/** What each alias stands for, found in one pass: the library's own look-up reads the whole document for each of them. */
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

/**
 * A number that JavaScript holds exactly; the text otherwise. An address without quotes is a number to YAML, and none of
 * its digits may be lost.
 */
function exactNumber(value: number, source: string): number | string {
  const isHash = /^0x[0-9a-fA-F]{15,}$/.test(source);
  return isHash || (Number.isInteger(value) && !Number.isSafeInteger(value)) ? source : value;
}

/** The parser leaves an absent value null; in a parsed document everything else is a node. */
function asNode(value: unknown): Node | null {
  return isAlias(value) || isMap(value) || isSeq(value) || isScalar(value) ? value : null;
}
