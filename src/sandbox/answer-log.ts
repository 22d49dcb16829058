import type { FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from './authorize.ts';
import { type BoundedLog, createBoundedLog } from './bounded-log.ts';
import { LOG_CAPACITY, type Mention } from './world.ts';

/** An answer with status 200: when (Unix milliseconds), to what, and what it said about whom. */
export type Answer = { at: number; path: string; query: unknown; subjects: readonly Mention[] };

/** Answers requests with 200 and remembers what was said. */
export type Answering = {
  readonly log: BoundedLog<Answer>;
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    answer: { body: unknown; subjects: readonly Mention[] },
  ): FastifyReply;
};

export function createAnswering({ nowMs }: { nowMs: () => number }): Answering {
  const log = createBoundedLog<Answer>(LOG_CAPACITY);
  return {
    log,
    send(request, reply, { body, subjects }) {
      log.add({ at: nowMs(), path: pathOf(request), query: request.query, subjects });
      return reply.code(200).type('application/json').send(JSON.stringify(body));
    },
  };
}
