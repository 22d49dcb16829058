import type { FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from './authorize.ts';
import { type BoundedLog, createBoundedLog } from './bounded-log.ts';
import { LOG_CAPACITY, type Mention } from './world.ts';

/** What the open quoting service was asked, and the outputs that it showed in base units, one per quote. */
export type Quoted = { request: unknown; outputs: readonly string[] };

/**
 * An answer with status 200 to 202: when (Unix milliseconds), to what, and what it said about whom. `quoted` is only
 * there for answers of the open quoting service that were readable.
 */
export type Answer = {
  at: number;
  path: string;
  query: unknown;
  subjects: readonly Mention[];
  quoted?: Quoted;
};

/** Answers requests that succeed and remembers what was said. */
export type Answering = {
  readonly log: BoundedLog<Answer>;
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    answer: { body: unknown; subjects: readonly Mention[] },
  ): FastifyReply;
  /**
   * Answers a request that made something. It is logged without subjects: whoever watches them has not been told, but
   * whoever made them.
   */
  sendMade(
    request: FastifyRequest,
    reply: FastifyReply,
    answer: { statusCode: 200 | 201 | 202; body: unknown; quoted?: Quoted },
  ): FastifyReply;
};

export function createAnswering({
  nowMs,
  isLost,
}: {
  nowMs: () => number;
  /** Whether the answer to a request will not be readable: it is logged without subjects. */
  isLost: (request: FastifyRequest) => boolean;
}): Answering {
  const log = createBoundedLog<Answer>(LOG_CAPACITY);
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
    send: (request, reply, given) => answer(request, reply, { statusCode: 200, ...given }),
    sendMade: (request, reply, given) => answer(request, reply, { ...given, subjects: [] }),
  };
}
