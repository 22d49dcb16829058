import type { FastifyReply, FastifyRequest } from 'fastify';
import { type BoundedLog, createBoundedLog } from '../world/bounded-log.ts';
import { pathOf } from '../world/path.ts';
import { contentOf, type StatusRecord, type Step } from '../world/record.ts';
import { type Entry, LOG_CAPACITY, type Mention } from '../world/world.ts';

/** A request to the open quoting service, and the outputs of its answer in base units, one per quote. */
export type Quoted = { request: unknown; outputs: readonly string[] };

/**
 * An answer with status 200 to 202: its time (Unix milliseconds), its request, and the subjects with their statuses. Only
 * readable answers of the open quoting service have `quoted`.
 */
export type LoggedAnswer = {
  at: number;
  path: string;
  query: unknown;
  subjects: readonly Mention[];
  quoted?: Quoted;
};

/**
 * A record of a subject as an answer showed it, after all faults. `updatedAt` is in Unix seconds, null where the record has
 * none; `content` is a digest of the record without `updatedAt`. For an unknown id the status is `unknown` and the content
 * empty. `steps` counts steps that were shown as failed and as refunded.
 */
export type ShownRecord = Mention & {
  updatedAt: number | null;
  content: string;
  steps: { failed: number; refunded: number };
};

/**
 * A readable answer about subjects. Lost, cut or replaced answers are not included. Times are Unix milliseconds: the arrival
 * of the request, the read of the records, and the last byte sent (null while it was not). `isPage`: of a collection, else of
 * one subject.
 */
export type Showing = {
  requestedAt: number;
  at: number;
  doneAt: number | null;
  isPage: boolean;
  records: readonly ShownRecord[];
};

/** Answers requests that succeed and logs the answers. */
export type Answering = {
  readonly log: BoundedLog<LoggedAnswer>;
  readonly showings: BoundedLog<Showing>;
  /** Notes the arrival of a request; call it before all other work on the request. */
  came(request: FastifyRequest): void;
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    answer: { body: unknown; shown: readonly Entry<object>[]; isPage: boolean },
  ): FastifyReply;
  /** Answers a request that made a subject. It is logged without subjects: its maker was notified, not its watchers. */
  sendMade(
    request: FastifyRequest,
    reply: FastifyReply,
    answer: { statusCode: 200 | 201 | 202; body: unknown; quoted?: Quoted },
  ): FastifyReply;
  /** Notes that an answer outside 200 to 202 reported a subject as unknown. */
  noteUnknown(request: FastifyRequest, reply: FastifyReply, subject: string): void;
};

export function createAnswering({
  nowMs,
  isLost,
}: {
  nowMs: () => number;
  /** True when the answer to a request will not be readable: it is logged without subjects. */
  isLost: (request: FastifyRequest) => boolean;
}): Answering {
  const log = createBoundedLog<LoggedAnswer>(LOG_CAPACITY);
  const showings = createBoundedLog<Showing>(LOG_CAPACITY);
  const cameAt = new WeakMap<FastifyRequest, number>();

  function noteShowing(
    request: FastifyRequest,
    reply: FastifyReply,
    shown: { isPage: boolean; records: readonly ShownRecord[] },
  ): void {
    if (isLost(request)) return;
    const at = nowMs();
    const showing: Showing = { requestedAt: cameAt.get(request) ?? at, at, doneAt: null, ...shown };
    showings.add(showing);
    reply.raw.once('finish', () => {
      showing.doneAt = nowMs();
    });
  }

  function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    given: { statusCode: number; body: unknown; subjects: readonly Mention[]; quoted?: Quoted },
  ): FastifyReply {
    const lost = isLost(request);
    const subjects = lost ? [] : given.subjects;
    const quoted = lost || given.quoted === undefined ? {} : { quoted: given.quoted };
    log.add({ at: nowMs(), path: pathOf(request), query: request.query, subjects, ...quoted });
    return reply.code(given.statusCode).type('application/json').send(JSON.stringify(given.body));
  }

  return {
    log,
    showings,
    came: (request) => void cameAt.set(request, nowMs()),
    send(request, reply, { body, shown, isPage }) {
      if (shown.length > 0) noteShowing(request, reply, { isPage, records: shown.map(shownRecord) });
      return answer(request, reply, { statusCode: 200, body, subjects: shown.map(({ mention }) => mention) });
    },
    sendMade: (request, reply, given) => answer(request, reply, { ...given, subjects: [] }),
    noteUnknown(request, reply, subject) {
      const records = [{ id: subject, status: 'unknown', updatedAt: null, content: '', steps: stepsOf({}) }];
      noteShowing(request, reply, { isPage: false, records });
    },
  };
}

function shownRecord({ record, mention }: Entry<object>): ShownRecord {
  const updatedAt = 'updatedAt' in record && typeof record.updatedAt === 'number' ? record.updatedAt : null;
  const content = mention.status === 'unknown' ? '' : contentOf(record);
  return { ...mention, updatedAt, content, steps: stepsOf(record) };
}

function stepsOf(record: Pick<StatusRecord, 'steps'>): ShownRecord['steps'] {
  const count = (status: Step['status']): number =>
    (record.steps ?? []).filter((step) => step.status === status).length;
  return { failed: count('FAILED'), refunded: count('REFUNDED') };
}
