import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';

/** A correct answer about one subject: its record, the members that its reader needs, and its envelope. */
export type Right = {
  record: JsonObject;
  core: readonly string[];
  /** The body around the JSON texts of records. */
  wrap: (records: readonly string[]) => string;
  /** A record of another subject with a change that never happened. */
  stranger: JsonObject;
  /** True when the body may have more than one record. */
  isList: boolean;
};

/** An answer as it is sent. */
export type Sent = { status: number; body: string | Uint8Array; headers?: Record<string, string> };

/** The random parts of a mutation. */
type Draw = { at: number; junk: JsonValue };

/**
 * One way to change an answer. None adds a fact: the answer is unreadable, lacks a needed member, is about another subject,
 * is older, omits something, or states the same in other letters.
 */
export type Mutation = { name: string; draw: Draw };

type RecordMutation = (right: Right, draw: Draw) => readonly string[];
type AnswerMutation = (body: string, draw: Draw) => Sent;

const ok = (body: string | Uint8Array, type = 'application/json'): Sent => ({
  status: 200,
  body,
  headers: { 'content-type': type },
});

const pick = <T>(list: readonly T[], at: number): T => {
  const item = list[at % list.length];
  if (item === undefined) throw new Error('cannot pick from an empty list');
  return item;
};

const text = (value: JsonValue): string => JSON.stringify(value);

/** A member that can be omitted: not the core, and not the age of the record. */
const optional = ({ record, core }: Right, at: number): string =>
  pick(
    Object.keys(record).filter((key) => !core.includes(key)),
    at,
  );

const without = (record: JsonObject, key: string): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== key));

/** A member is put before all others, or after them, as text: so it may occur twice. */
const withFirst = (record: JsonObject, member: string): string => `{${member},${text(record).slice(1)}`;
const withLast = (record: JsonObject, member: string): string => `${text(record).slice(0, -1)},${member}}`;

/** Digits that no number of JavaScript holds. */
const HUGE = ['1e400', '99999999999999999999999', '-1e999', '0.1e-400', '123456789012345678901234567890.5'];

const garbledInside = (value: JsonValue, junk: string): string =>
  text(value).replace(/"(txHash|intentHash|token)":"[^"]*"/, `"$1":${junk}`);

const reversed = (value: JsonValue): JsonValue => {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
};

/** Mutations of a record, on pages as well as alone. */
const OF_RECORDS: Readonly<Record<string, RecordMutation>> = {
  'core dropped': ({ record, core }, { at }) => [text(without(record, pick(core, at)))],
  'core of another type': ({ record, core }, { at }) => [
    text({ ...record, [pick(core, at)]: pick<JsonValue>([null, 5, true, [], {}, ['pending']], at >>> 3) }),
  ],
  'huge number as core': ({ record, core }, { at }) => [
    withLast(record, `"${pick(core, at)}":${pick(HUGE, at >>> 3)}`),
  ],
  'core twice, the last broken': ({ record, core }, { at }) => [withLast(record, `"${pick(core, at)}":null`)],
  'core twice, the last right': ({ record, core }, { at }) => [
    withFirst(record, `"${pick(core, at)}":"settled"`),
  ],
  'optional member dropped': (right, { at }) => [text(without(right.record, optional(right, at)))],
  'all optional members dropped': ({ record, core }) => [
    text(Object.fromEntries(Object.entries(record).filter(([key]) => core.includes(key)))),
  ],
  'optional member null': (right, { at }) => [text({ ...right.record, [optional(right, at)]: null })],
  'optional member of another type': (right, { at }) => [
    text({ ...right.record, [optional(right, at)]: pick<JsonValue>([true, 1.5, false], at >>> 3) }),
  ],
  'inner member of another type': ({ record }, { at }) => [
    garbledInside(record, pick(['5', 'null', '[]', '{}'], at)),
  ],
  'huge number inside': ({ record }, { at }) => [garbledInside(record, pick(HUGE, at))],
  'time that is none': ({ record }, { at }) =>
    'updatedAt' in record
      ? [text({ ...record, updatedAt: pick<JsonValue>(['soon', 1.5, true, {}, '1e9', ''], at) })]
      : [text(record)],
  'time as digits': ({ record }) =>
    'updatedAt' in record ? [text({ ...record, updatedAt: String(record.updatedAt) })] : [text(record)],
  'older, and something else': ({ record }, { at }) =>
    'updatedAt' in record
      ? [text({ ...record, status: 'settled', updatedAt: Number(record.updatedAt) - 1_000 - (at % 1_000) })]
      : [],
  prototype: ({ record }, { junk }) => [
    withLast(record, `"__proto__":{"status":"settled","x":${text(junk)}}`),
  ],
  'other letter case of hex': ({ record }) => [
    text(record).replaceAll(/0x[0-9a-f]+/g, (hex) => `0x${hex.slice(2).toUpperCase()}`),
  ],
  'members in another order': ({ record }) => [text(reversed(record))],
  'nothing but junk': (_right, { junk }) => [text(typeof junk === 'object' ? 5 : junk)],
};

/** Mutations of a record that was requested alone: on a page, a record of another subject would count. */
const OF_SINGLE_RECORDS: Readonly<Record<string, RecordMutation>> = {
  'record of another subject': ({ stranger }) => [text(stranger)],
  'between strangers': ({ record, stranger, isList }, { junk }) =>
    isList ? [text(stranger), text(record), text(junk), 'null', text(stranger)] : [text(record)],
  'not known': ({ record }) => [text({ ...record, status: 'unknown', state: 'unknown', updatedAt: null })],
};

const OF_ANSWERS: Readonly<Record<string, AnswerMutation>> = {
  truncated: (body, { at }) => ok(body.slice(0, at % body.length)),
  HTML: () => ok('<!doctype html><html><body>Back soon</body></html>', 'text/html'),
  empty: () => ok(''),
  'UTF-16': (body) => ok(Buffer.from(body, 'utf16le')),
  compressed: (body) => ok(gzipSync(body)),
  'bytes that are no text': (body, { at }) =>
    ok(Buffer.concat([Buffer.from([0xff, at % 256, 0]), Buffer.from(body)])),
  'junk instead': (_body, { junk }) =>
    ok(text(Array.isArray(junk) || typeof junk !== 'object' ? junk : [junk])),
  'envelope of another type': (_body, { at }) =>
    ok(
      pick(
        [
          '{"results":{},"data":[]}',
          '{"results":null,"data":null}',
          '{}',
          '{"results":"x","data":5}',
          '{"results":[],"data":"x"}',
        ],
        at,
      ),
    ),
  'nested too deeply': (body, { at }) => {
    const depth = 200 + (at % 20_000);
    return ok(`${body.slice(0, -1)},"deep":${'['.repeat(depth)}${']'.repeat(depth)}}`);
  },
  'an error that carries it': (body, { at }) => ({ status: pick([500, 502, 503, 504, 408], at), body }),
  'a redirect that carries it': (body) => ({ status: 302, body, headers: { location: '/elsewhere' } }),
  'two bodies': (body) => ok(body + body),
  'wrong content type': (body, { at }) =>
    ok(body, pick(['text/plain', 'text/html', 'image/png', 'application/xml'], at)),
  'byte order mark': (body) => ok(`\ufeff${body}`),
  'space around': (body) => ok(`\n\t ${JSON.stringify(JSON.parse(body), null, 4)}\r\n`),
  'more around': (body, { junk }) =>
    ok(
      `${body.slice(0, -1)},"constructor":${text(junk)},"toString":null,"__proto__":{"results":[]},"half":"\\ud800"}`,
    ),
};

const draw: fc.Arbitrary<Draw> = fc.record({
  at: fc.nat(),
  junk: fc.oneof(
    fc.constantFrom<JsonValue[]>(null, '', 0, [], {}, 'settled', [{}], { status: 'settled' }),
    fc.string(),
    fc.integer(),
  ),
});

const IN_PAGES = [...Object.keys(OF_RECORDS), ...Object.keys(OF_ANSWERS)];

/** The names of all mutations. */
export const MUTATIONS: readonly string[] = [...IN_PAGES, ...Object.keys(OF_SINGLE_RECORDS)];

/** Any mutation of a single poll. */
export const ofLookup: fc.Arbitrary<Mutation> = fc.record({ name: fc.constantFrom(...MUTATIONS), draw });

/** Any mutation of a page. */
export const ofPage: fc.Arbitrary<Mutation> = fc.record({ name: fc.constantFrom(...IN_PAGES), draw });

/** Changes the answer to a single poll, or a page of several records, each in its own way. */
export function mangled(rights: readonly Right[], { name, draw: drawn }: Mutation): Sent {
  const [first] = rights;
  if (first === undefined) throw new Error('nothing to mangle');
  const ofRecord = OF_RECORDS[name] ?? OF_SINGLE_RECORDS[name];
  if (ofRecord !== undefined) {
    const records = rights.flatMap((right, index) => ofRecord(right, { ...drawn, at: drawn.at + index }));
    return ok(first.wrap(records));
  }
  const ofAnswer = OF_ANSWERS[name];
  if (ofAnswer === undefined) throw new Error(`no mutation ${name}`);
  return ofAnswer(first.wrap(rights.map(({ record }) => text(record))), drawn);
}
