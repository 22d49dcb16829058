import { readFileSync } from 'node:fs';
import type { Cluster, Redis } from 'ioredis';
import { z } from 'zod';

/** A connection to a Redis server, a Sentinel group (both `Redis`) or a Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * Version of the stored data. Every log entry carries that of its writer, and Redis that of all; no version counts as 0. It
 * grows with every change that an earlier program could not read.
 */
export const SCHEMA_VERSION = 7;

const FOLDER = new URL('./commands/', import.meta.url);

/** A line of a script that represents a file of `commands/include`. */
const INCLUDE = /^-- @include ([a-z-]+)$/gm;

/** A key or an argument by its name, as scripts write it: `KEYS.plan`, `#ARGV.ids`, `ARGV.ids[i]`, `ARGV.polls[i].token`. */
const NAMED = /(#?)\b(KEYS|ARGV)\.(\w+)(?:\[(\w+)\](?:\.(\w+))?)?/g;

/** A comment of whole lines. Without them a script has two thirds of its size, here, on the wire and in Redis. */
const COMMENT = /--\[\[[\s\S]*?\]\]|^[ \t]*--.*$/gm;

/** Sets the version that log entries carry. On the first line, so that errors name the right line. */
const PRELUDE = `local SCHEMA_VERSION = '${SCHEMA_VERSION}' `;

/** Writes an argument for a script. A list takes the rest of ARGV: `list` names its entries' fields, none for plain values. */
type Argument<T> = { write(value: T, into: string[]): unknown; readonly list?: readonly string[] };

type Arguments = { readonly [name: string]: Argument<unknown> };

type ValuesOf<A extends Arguments> = {
  readonly [N in keyof A]: A[N] extends Argument<infer T> ? T : never;
};

const written = <T>(encode: (value: T) => string): Argument<T> => ({
  write: (value, into) => into.push(encode(value)),
});

/** The argument types of script headers. */
export const arg = {
  text: written((value: string) => value),
  number: written((value: number) => String(value)),
  flag: written((value: boolean) => (value ? '1' : '')),
  json: written((value: object) => JSON.stringify(value)),
  oneOf: <const V extends string>(..._: readonly V[]): Argument<V> => written((value) => value),
  /** Written as "" where it is null. */
  optional: <T>({ write }: Argument<T>): Argument<T | null> => ({
    write: (value, into) => (value === null ? into.push('') : write(value, into)),
  }),
  list: <T>({ write }: Argument<T>): Argument<readonly T[]> => ({
    list: [],
    write: (values, into) => values.forEach((value) => void write(value, into)),
  }),
  records: <A extends Arguments>(fields: A): Argument<readonly ValuesOf<A>[]> => ({
    list: Object.keys(fields),
    write: (records, into) => records.forEach((record) => void writeAll(fields, record, into)),
  }),
};

function writeAll<A extends Arguments>(fields: A, values: ValuesOf<A>, into: string[]): void {
  for (const name in fields) fields[name]?.write(values[name], into);
}

type Shape = { readonly [name: string]: z.ZodType };

type Decoder = (raw: unknown) => unknown;

/** Turns a raw reply into the value that a schema checks. Transforms within schemas took five to eight times as long. */
const decoders = new WeakMap<z.ZodType, Decoder>();

function decoderOf(schema: z.ZodType): Decoder {
  return decoders.get(schema) ?? ((raw) => raw);
}

function decoded<S extends z.ZodType>(schema: S, decode: Decoder): S {
  decoders.set(schema, decode);
  return schema;
}

const ofList =
  (decode: (list: readonly unknown[]) => unknown): Decoder =>
  (raw) =>
    Array.isArray(raw) ? decode(raw) : raw;

const FLAGS = new Map<unknown, boolean>([
  [1, true],
  ['1', true],
  [0, false],
  ['0', false],
  ['', false],
]);

/** The reply types of script headers. A stored value that may be foreign is a text in a reply. */
export const reply = {
  text: z.string(),
  number: decoded(z.number(), (raw) => (typeof raw === 'string' && raw !== '' ? Number(raw) : raw)),
  flag: decoded(z.boolean(), (raw) => (FLAGS.has(raw) ? FLAGS.get(raw) : raw)),
  /** Alternating names and values. */
  hash: decoded(z.record(z.string(), z.string()), ofList(pairsOf)),
  oneOf: <const V extends string>(...values: readonly V[]) => z.enum(values),
  /** Null where it is "". */
  optional: <S extends z.ZodType>(schema: S) => {
    const decode = decoderOf(schema);
    return decoded(schema.nullable(), (raw) => (raw === '' ? null : decode(raw)));
  },
  list: <S extends z.ZodType>(schema: S) => {
    const decode = decoders.get(schema);
    return decode === undefined
      ? z.array(schema)
      : decoded(
          z.array(schema),
          ofList((list) => list.map(decode)),
        );
  },
  /** A list with a value for each name, in this order. */
  fields: <S extends Shape>(shape: S) => decoded(z.object(shape), ofList(namer(shape))),
  /** As `fields`, and the last name has all values from its place on. */
  fieldsAndRest: <S extends Shape>(shape: S) => {
    const [name, last] = [namer(shape), Object.keys(shape).length - 1];
    return decoded(
      z.object(shape),
      ofList((row) => name([...row.slice(0, last), row.slice(last)])),
    );
  },
  rows: <S extends Shape>(shape: S) => {
    const name = ofList(namer(shape));
    return decoded(
      z.array(z.object(shape)),
      ofList((rows) => rows.map(name)),
    );
  },
  /** A flat list: the values of the first record, then those of the next. */
  records: <S extends Shape>(shape: S) => {
    const [name, size] = [namer(shape), Object.keys(shape).length];
    return decoded(
      z.array(z.object(shape)),
      ofList((flat) =>
        Array.from({ length: Math.ceil(flat.length / size) }, (_, index) =>
          name(flat.slice(index * size, (index + 1) * size)),
        ),
      ),
    );
  },
  orNothing: <S extends z.ZodType>(schema: S) => {
    const decode = decoderOf(schema);
    return decoded(
      schema.nullable(),
      ofList((row) => (row.length === 0 ? null : decode(row))),
    );
  },
};

/** Names the values of a list; a list that is shorter or longer than the names is returned unchanged. */
function namer(shape: Shape): (row: readonly unknown[]) => unknown {
  const members = Object.entries(shape).map(([name, schema]) => ({ name, decode: decoderOf(schema) }));
  return (row) => {
    if (row.length !== members.length) return row;
    const named: { [name: string]: unknown } = {};
    members.forEach(({ name, decode }, index) => {
      named[name] = decode(row[index]);
    });
    return named;
  };
}

function pairsOf(flat: readonly unknown[]): unknown {
  const fields: { [field: string]: unknown } = {};
  for (let index = 0; index + 1 < flat.length; index += 2) fields[String(flat[index])] = flat[index + 1];
  return fields;
}

/** The declaration in a script's header. `file` is its name in `commands`, which ends with the number of its keys. */
type Declaration<K extends string, A extends Arguments, R extends z.ZodType> = {
  file: string;
  keys: readonly K[];
  args: A;
  reply: R;
};

/**
 * A script, run with keys and arguments by name. Its reply is parsed. `read` reads its file, which an upgrade may replace while
 * the process runs; `define` is called at the first run on a connection.
 */
export type Script<K extends string, A extends Arguments, R extends z.ZodType> = {
  (
    redis: RedisClient,
    call: { keys: { readonly [N in K]: string }; args: ValuesOf<A> },
  ): Promise<z.output<R>>;
  read(): void;
  define(redis: RedisClient): void;
};

/** Builds a script from its declaration. */
export function script<K extends string, A extends Arguments, R extends z.ZodType>(
  declaration: Declaration<K, A, R>,
): Script<K, A, R> {
  const { file, keys, args, reply: schema } = declaration;
  const command = `iw:${file}`;
  const decode = decoderOf(schema);
  let lua: string | undefined;
  const text = (): string => {
    lua ??= luaOf(declaration);
    return lua;
  };
  const define = (redis: RedisClient): void =>
    redis.defineCommand(command, { numberOfKeys: keys.length, lua: text() });
  const run: (...call: Parameters<Script<K, A, R>>) => Promise<z.output<R>> = async (redis, call) => {
    if (!Reflect.has(redis, command)) define(redis);
    const values: string[] = keys.map((name) => call.keys[name]);
    writeAll(args, call.args, values);
    return schema.parse(decode(await Reflect.apply(Reflect.get(redis, command), redis, values)));
  };
  return Object.assign(run, { read: () => void text(), define });
}

function luaOf(declaration: Declaration<string, Arguments, z.ZodType>): string {
  const text = readFileSync(new URL(`${declaration.file}.lua`, FOLDER), 'utf8');
  const whole = (PRELUDE + byPosition(text, declaration)).replace(INCLUDE, (_, included: string) =>
    readFileSync(new URL(`include/${included}.lua`, FOLDER), 'utf8'),
  );
  return whole.replace(COMMENT, (comment) => comment.replace(/[^\n]/g, ''));
}

/** Replaces names by positions. This costs nothing when the script runs, unlike locals, of which Lua allows only 200. */
function byPosition(text: string, { file, keys, args }: Declaration<string, Arguments, z.ZodType>): string {
  const names = { KEYS: keys, ARGV: Object.keys(args) };
  return text.replace(NAMED, (whole, hash: string, table: 'KEYS' | 'ARGV', name: string, ...rest) => {
    const [index, field]: (string | undefined)[] = rest;
    const place = names[table].indexOf(name) + 1;
    if (place === 0) throw new Error(`${file}.lua: ${table}.${name} is not declared`);
    const list = table === 'ARGV' ? args[name]?.list : undefined;
    if (list === undefined) return whole.replace(`${table}.${name}`, `${table}[${place}]`);
    const before = place - 1;
    if (index === undefined && hash === '') return `{ unpack(ARGV, ${place}) }`;
    if (list.length === 0) return index === undefined ? `(#ARGV - ${before})` : `ARGV[${index} + ${before}]`;
    if (index === undefined) return `((#ARGV - ${before}) / ${list.length})`;
    const offset = list.indexOf(field ?? '') + 1;
    if (offset === 0) throw new Error(`${file}.lua: ${whole} is not declared`);
    return `ARGV[${index} * ${list.length} + ${before + offset - list.length}]`;
  });
}

/** Returns Redis time, in ms. */
export async function redisTimeMs(redis: RedisClient): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** Cuts a list into parts of at most `size`, since a command takes a limited number of values. */
export function chunks<T>(list: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let index = 0; index < list.length; index += size) parts.push(list.slice(index, index + size));
  return parts;
}
