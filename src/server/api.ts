import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { RenderedEvent } from '../domain/events/event.ts';
import type { Secret } from '../secret.ts';
import { withTimeout } from '../with-timeout.ts';
import type { EventLinks } from './event-links.ts';
import { FailedLogins } from './failed-logins.ts';
import { sendProblem } from './problem.ts';

/** An event as one receiver gets it, whole; null when that receiver has no delivery of it, or no longer. Rejects when nobody can tell. */
export type FindEvent = (wanted: { id: string; receiver: string }) => Promise<RenderedEvent | null>;

/** The API, the token that it asks for, and the links that need none. */
export type ApiOptions = { token: Secret; links: EventLinks; findEvent: FindEvent };

const FIND_TIMEOUT_MS = 2_000;

const EVENT_ID = z.string().regex(/^evt_[0-9a-f]{40}$/);
const RECEIVER = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);

type EventQuery = { receiver?: unknown; expires?: unknown; signature?: unknown };

/** Adds `GET /v1/events/{id}?receiver=NAME`, for whoever has the token, or a signed link to that very event. */
export function routeApi(app: FastifyInstance, { token, links, findEvent }: ApiOptions): void {
  const failures = new FailedLogins();
  app.get<{ Params: { id: string }; Querystring: EventQuery }>('/v1/events/:id', async (request, reply) => {
    const { receiver: named, expires, signature } = request.query;
    const isLink = signature !== undefined;
    if (!isLink && !isAuthorized(request, token)) {
      const waited = await failures.wait(request.ip, performance.now());
      return waited ? refuse(reply) : sendTooMany(reply);
    }
    const id = EVENT_ID.safeParse(request.params.id);
    const receiver = RECEIVER.safeParse(named);
    if (!receiver.success) return sendProblem(reply, 400, 'expected ?receiver= with the name of a receiver');
    if (isLink) {
      const linked = { id: request.params.id, receiver: receiver.data };
      const word = links.check(linked, { expires, signature, nowMs: Date.now() });
      if (word !== 'good') return sendProblem(reply, 403, BAD_LINKS[word]);
    }
    const answer = id.success
      ? await askedWithin(findEvent, { id: id.data, receiver: receiver.data })
      : { event: null };
    if (answer === null) return sendProblem(reply, 503, 'the events cannot be read now; try again later');
    if (answer.event === null) {
      const detail = `receiver ${receiver.data} has no delivery of this event, or its retention is over`;
      return sendProblem(reply, 404, detail);
    }
    return reply.header('cache-control', 'no-store').send(answer.event);
  });
}

const BAD_LINKS = {
  expired: 'this link has expired; the event can still be read with the server.token of the config',
  forged: 'this link was not made here for this event and receiver; expected the whole link as it was sent',
} as const;

/** What is found; null when Redis does not say within 2 s, or the daemon has not started. */
async function askedWithin(
  findEvent: FindEvent,
  wanted: { id: string; receiver: string },
): Promise<{ event: RenderedEvent | null } | null> {
  try {
    return await withTimeout(
      findEvent(wanted).then((event) => ({ event })),
      FIND_TIMEOUT_MS,
    );
  } catch {
    return null;
  }
}

/** Digests of equal length are compared, so that the time tells nothing about the token. */
function isAuthorized({ headers }: FastifyRequest, token: Secret): boolean {
  const [, given = ''] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  return timingSafeEqual(digest(given), digest(token.reveal()));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function sendTooMany(reply: FastifyReply): FastifyReply {
  reply.header('retry-after', '60').header('connection', 'close');
  return sendProblem(reply, 429, 'found too many failed logins, expected the server.token of the config');
}

function refuse(reply: FastifyReply): FastifyReply {
  reply.header('www-authenticate', 'Bearer');
  return sendProblem(
    reply,
    401,
    'expected the header Authorization: Bearer and the server.token of the config',
  );
}
