import type { FastifyInstance } from 'fastify';
import { type BoundedLog, createBoundedLog } from '../world/bounded-log.ts';
import { pathOf } from '../world/path.ts';
import { LOG_CAPACITY } from '../world/world.ts';

/** A request: its time (Unix ms), target, and `user-agent` (null: none). `status` of the answer is null until it was sent. */
export type CameRequest = {
  at: number;
  method: string;
  path: string;
  query: unknown;
  agent: string | null;
  status: number | null;
};

/** Logs every request, also those that are refused or struck by a fault. */
export type RequestLog = {
  readonly log: BoundedLog<CameRequest>;
  /** Logs the requests of a port; call it before any other hook is added. */
  watch(app: FastifyInstance): void;
};

export function createRequestLog({ nowMs }: { nowMs: () => number }): RequestLog {
  const log = createBoundedLog<CameRequest>(LOG_CAPACITY);
  return {
    log,
    watch(app) {
      app.addHook('onRequest', async (request, reply) => {
        const came: CameRequest = {
          at: nowMs(),
          method: request.method,
          path: pathOf(request),
          query: request.query,
          agent: request.headers['user-agent'] ?? null,
          status: null,
        };
        log.add(came);
        reply.raw.once('finish', () => {
          came.status = reply.statusCode;
        });
      });
    },
  };
}
