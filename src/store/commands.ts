import { readFileSync } from 'node:fs';
import type { Cluster, Redis } from 'ioredis';
import { z } from 'zod';
import { pairs } from './stored.ts';

/** A connection to a Redis server, a Sentinel group (both `Redis`) or a Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * The version of what this program stores. Every entry of the log carries that of its writer, and Redis that of all:
 * what has none counts as 0. It grows with every change that a program
 * before it could not read.
 */
export const SCHEMA_VERSION = 2;

const FOLDER = new URL('./commands/', import.meta.url);

/** A line of a script that stands for a file of `commands/include`. */
const INCLUDE = /^-- @include ([a-z-]+)$/gm;

/** A key or an argument by its name, as scripts write it: `KEYS.plan`, `#ARGV.ids`, `ARGV.ids[i]`, `ARGV.polls[i].token`. */
const NAMED = /(#?)\b(KEYS|ARGV)\.(\w+)(?:\[(\w+)\](?:\.(\w+))?)?/g;

/** The version that entries of the log carry. On the first line, so that errors name the right one. */
const PRELUDE = `local SCHEMA_VERSION = '${SCHEMA_VERSION}' `;

/**
 * How an argument is written for a script. A list takes the rest of ARGV: `list` has the names of the fields of its
 * entries, none for plain values.
 */
type Argument<T> = { write(value: T, into: string[]): unknown; readonly list?: readonly string[] };

type Arguments = { readonly [name: string]: Argument<unknown> };

type ValuesOf<A extends Arguments> = {
  readonly [N in keyof A]: A[N] extends Argument<infer T> ? T : never;
};

const written = <T>(encode: (value: T) => string): Argument<T> => ({
  write: (value, into) => into.push(encode(value)),
});

/** The kinds of arguments that the headers of scripts name. */
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

/** The kinds of replies that the headers of scripts name. A stored value that may be foreign is a text to them. */
export const reply = {
  text: z.string(),
  number: z.unknown().transform((value, context): number => {
    const number = typeof value === 'string' && value !== '' ? Number(value) : value;
    if (typeof number === 'number' && !Number.isNaN(number)) return number;
    context.addIssue({ code: 'custom', message: 'expected a number' });
    return z.NEVER;
  }),
  flag: z.literal([0, 1, '', '0', '1']).transform((value) => value === 1 || value === '1'),
  /** Names and values by turns. */
  hash: z.array(z.string()).transform(pairs),
  oneOf: <const V extends string>(...values: readonly V[]) => z.enum(values),
  /** Null where it is "". */
  optional: <S extends z.ZodType>(schema: S) =>
    z.preprocess((value) => (value === '' ? null : value), schema.nullable()),
  list: <S extends z.ZodType>(schema: S) => z.array(schema),
  /** A list with a value for each name, in this order. */
  fields: <S extends Shape>(shape: S) => z.preprocess(namer(Object.keys(shape)), z.object(shape)),
  /** The same, and the last name has all values from its place on. */
  fieldsAndRest: <S extends Shape>(shape: S) => {
    const names = Object.keys(shape);
    const name = namer(names);
    const last = names.length - 1;
    const named = (row: unknown): unknown =>
      Array.isArray(row) ? name([...row.slice(0, last), row.slice(last)]) : row;
    return z.preprocess(named, z.object(shape));
  },
  /** A list of such lists. */
  rows: <S extends Shape>(shape: S) => z.array(z.preprocess(namer(Object.keys(shape)), z.object(shape))),
  /** A flat list: the values of the first record, then those of the next. */
  records: <S extends Shape>(shape: S) => {
    const names = Object.keys(shape);
    const name = namer(names);
    const parted = (flat: unknown): unknown =>
      Array.isArray(flat)
        ? Array.from({ length: flat.length / names.length }, (_, index) =>
            name(flat.slice(index * names.length, (index + 1) * names.length)),
          )
        : flat;
    return z.preprocess(parted, z.array(z.object(shape)));
  },
  /** Null where the list is empty. */
  orNothing: <S extends z.ZodType>(schema: S) =>
    z.preprocess((row) => (Array.isArray(row) && row.length === 0 ? null : row), schema.nullable()),
};

function namer(names: readonly string[]): (row: unknown) => unknown {
  return (row) =>
    Array.isArray(row) && row.length === names.length
      ? Object.fromEntries(names.map((name, index) => [name, row[index]]))
      : row;
}

/** What the header of a script declares. `file` is its name in `commands`, which ends with the number of its keys. */
type Declaration<K extends string, A extends Arguments, R extends z.ZodType> = {
  file: string;
  keys: readonly K[];
  args: A;
  reply: R;
};

/** A script: run on a connection that knows it, with keys and arguments by name. Its reply is parsed. */
export type Script<K extends string, A extends Arguments, R extends z.ZodType> = {
  (
    redis: RedisClient,
    call: { keys: { readonly [N in K]: string }; args: ValuesOf<A> },
  ): Promise<z.output<R>>;
  /** Teaches a connection the script. */
  define(redis: RedisClient): void;
};

/** Makes a script of its declaration. */
export function script<K extends string, A extends Arguments, R extends z.ZodType>(
  declaration: Declaration<K, A, R>,
): Script<K, A, R> {
  const { file, keys, args, reply: schema } = declaration;
  const command = `iw:${file}`;
  let lua: string | undefined;
  const run: (...call: Parameters<Script<K, A, R>>) => Promise<z.output<R>> = async (redis, call) => {
    const values: string[] = keys.map((name) => call.keys[name]);
    writeAll(args, call.args, values);
    const answer: unknown = await Reflect.apply(Reflect.get(redis, command), redis, values);
    return schema.parse(answer);
  };
  return Object.assign(run, {
    define: (redis: RedisClient) => {
      lua ??= luaOf(declaration);
      redis.defineCommand(command, { numberOfKeys: keys.length, lua });
    },
  });
}

function luaOf(declaration: Declaration<string, Arguments, z.ZodType>): string {
  const text = readFileSync(new URL(`${declaration.file}.lua`, FOLDER), 'utf8');
  return (PRELUDE + byPosition(text, declaration)).replace(INCLUDE, (_, included: string) =>
    readFileSync(new URL(`include/${included}.lua`, FOLDER), 'utf8'),
  );
}

/** Puts places for names: it costs nothing when the script runs, as locals would, and Lua allows only 200 of those. */
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
