import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { mutated, type RecordedChange } from './recorded-mutations.ts';
import { type StatedContent, statedGateway, statedStatus } from './recorded-oracle.ts';
import {
  gatewayJob,
  gatewayVault,
  isObject,
  type News,
  type PageKind,
  statusRecord,
  uuid,
  vaultAddressOf,
} from './recorded-shape.ts';

/** The steps of a subject: its first answer, then richer content, then another status. */
const STEPS: readonly (News | null)[] = [null, 'content', 'status'];

/** A healthy answer is newer than the changed ones of its step: at one time, an answer only adds (docs/assumptions.md). */
const HEALTHY_AFTER_S = 5;

function later(record: JsonObject, seconds: number): JsonObject {
  return 'updatedAt' in record ? { ...record, updatedAt: Number(record.updatedAt) + seconds } : record;
}

/** A subject with its true records. */
export type RecordedTruth = { subject: string; records: readonly JsonObject[] };

/** An address of requests: the changed answers of each step, and what was stated there. */
export class RecordedPlace {
  readonly truths: readonly RecordedTruth[];
  readonly kind: string;
  readonly #wrap: (records: readonly JsonObject[]) => JsonObject;
  readonly #read: (body: JsonValue) => { stated: (StatedContent | null)[]; flaws: number } | null;
  readonly #left: { step: number; changes: readonly (readonly RecordedChange[])[] }[];
  /** StatedContent answers by subject, in the order in which they were served. */
  readonly stated = new Map<string, StatedContent[]>();
  readonly counts = { answers: 0, records: 0, unread: 0, unreadable: 0 };
  #step = 0;

  constructor(
    {
      kind,
      truths,
      wrap,
      read,
    }: {
      kind: string;
      truths: readonly RecordedTruth[];
      wrap: (records: readonly JsonObject[]) => JsonObject;
      read: (body: JsonValue) => { stated: (StatedContent | null)[]; flaws: number } | null;
    },
    plan: readonly { step: number; changes: readonly (readonly RecordedChange[])[] }[],
  ) {
    this.kind = kind;
    this.truths = truths;
    this.#wrap = wrap;
    this.#read = read;
    this.#left = [...plan];
  }

  get isDone(): boolean {
    return this.#left.length === 0 && this.#step === STEPS.length - 1;
  }

  /** The next answer: each step is changed as planned, and then healthy once. */
  answer(): JsonValue {
    const next = this.#left.shift();
    if (next !== undefined) this.#step = next.step;
    const records = this.truths.map(({ records: all }, index) => {
      const how = next?.changes[index] ?? [];
      const record = later(all[next?.step ?? STEPS.length - 1] ?? {}, how.length === 0 ? HEALTHY_AFTER_S : 0);
      if (how.length > 0) this.counts.records += 1;
      return { record, how };
    });
    // A change of a whole entry would leave a page without this entry: it is made inside an envelope of its own.
    const changed = records.flatMap(({ record, how }) => {
      const inside = mutated({ record }, how);
      return isObject(inside) && Object.hasOwn(inside, 'record') ? [inside.record ?? null] : [];
    });
    const body = this.#wrap(changed as JsonObject[]);
    this.#note(body);
    return body;
  }

  #note(body: JsonValue): void {
    this.counts.answers += 1;
    const read = this.#read(body);
    if (read === null) return;
    this.counts.unreadable += read.flaws;
    for (const one of read.stated) {
      if (one === null) {
        this.counts.unread += 1;
        this.counts.unreadable += 1;
        continue;
      }
      this.counts.unreadable += one.unreadable.filter((name) => (one.record[name] ?? null) !== null).length;
      const subject = String(one.record.id ?? this.truths[0]?.subject).toLowerCase();
      const key = this.truths.length === 1 ? (this.truths[0]?.subject ?? '') : subject;
      this.stated.set(key, [...(this.stated.get(key) ?? []), one]);
    }
  }
}

const page = (records: readonly JsonObject[]): JsonObject => ({ results: [...records], nextCursor: null });

function readPage(body: JsonValue): { stated: (StatedContent | null)[]; flaws: number } | null {
  const results = isObject(body) ? body.results : undefined;
  return Array.isArray(results) ? { stated: results.map(statedStatus), flaws: 0 } : null;
}

/** A record's truths, each a little newer than the one before. */
export function statusTruth(kind: PageKind, number: number, fromSeconds: number): RecordedTruth {
  const records = STEPS.map((news, step): JsonObject => {
    return { ...statusRecord(kind, number, news), updatedAt: fromSeconds + step * 10 };
  });
  return { subject: String(records[0]?.id), records };
}

type AnswerPlan = ConstructorParameters<typeof RecordedPlace>[1];

/** An address of the status endpoint: a wallet's page, or one record. */
export function statusPlace(kind: string, truths: readonly RecordedTruth[], plan: AnswerPlan): RecordedPlace {
  return new RecordedPlace({ kind, truths, wrap: page, read: readPage }, plan);
}

/** A record of the gateway: its body is `{ data }`. */
export function gatewayPlace(kind: 'job' | 'vault', number: number, plan: AnswerPlan): RecordedPlace {
  const record = kind === 'job' ? gatewayJob : gatewayVault;
  const subject = kind === 'job' ? `gasless:gateway:${uuid(number)}` : `vault:8453:${vaultAddressOf(number)}`;
  const truths = [{ subject, records: STEPS.map((news) => record(number, news)) }];
  const wrap = (records: readonly JsonObject[]): JsonObject => ({ data: records[0] ?? null });
  const read = (body: JsonValue) => {
    const stated = statedGateway(body, kind);
    return stated === null ? null : { stated: [stated], flaws: 0 };
  };
  return new RecordedPlace({ kind: kind === 'job' ? 'gasless' : 'vault', truths, wrap, read }, plan);
}

/** All values of a record with the names that lead to them, without positions in lists. */
export function leaves(value: JsonValue, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => leaves(one, `${path}[]`));
  if (isObject(value)) return Object.entries(value).flatMap(([name, one]) => leaves(one, `${path}.${name}`));
  return [`${path}=${String(value).toLowerCase()}`];
}
