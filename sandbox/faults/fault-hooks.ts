import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ProblemCode } from '../endpoints/problem.ts';
import { isUnder, pathOf } from '../world/path.ts';
import type { Faults } from './faults.ts';

/** A fault that spoils a finished answer. */
export type Spoiling =
  | { type: 'lost-answer'; status: number }
  | { type: 'html' }
  | { type: 'truncated-body' }
  | { type: 'slow-body'; ms: number }
  | { type: 'wrong-content-type' };

/** Spoiled answers, by their requests. */
export type Spoilings = WeakMap<FastifyRequest, Spoiling>;

const HTML = '<!doctype html><html><body><h1>We will be right back</h1></body></html>';
const SLOW_PIECES = 4;

/**
 * Adds transport faults: latency, errors, and answers that are lost, cut, slow or replaced. `refuse` is the port's error
 * form.
 */
export function addFaultHooks(
  app: FastifyInstance,
  {
    faults,
    spoilings,
    nowMs,
    refuse,
  }: {
    faults: Faults;
    spoilings: Spoilings;
    nowMs: () => number;
    refuse: (request: FastifyRequest, reply: FastifyReply, code: ProblemCode) => FastifyReply;
  },
): void {
  app.addHook('onRequest', async (request, reply) => {
    const path = pathOf(request);
    const latency = faults.strike('latency', path);
    if (latency !== undefined) await delay(latency.ms + faults.random() * latency.spreadMs);
    const isKeyed = isUnder(path, '/v1') && request.headers['x-api-key'] !== undefined;
    if (isKeyed && faults.strike('key-revoked', path) !== undefined) {
      return refuse(request, reply, 'invalid-api-key');
    }
    const bare = faults.strike('bare-error', path);
    if (bare !== undefined) return sendBare(reply, bare.status);
    const error = faults.strike('error', path);
    if (error !== undefined) {
      if (error.retryAfterSeconds !== undefined) reply.header('retry-after', error.retryAfterSeconds);
      return refuse(request, reply, error.code);
    }
    const spoiling =
      faults.strike('lost-answer', path) ??
      faults.strike('html', path) ??
      faults.strike('truncated-body', path) ??
      faults.strike('wrong-content-type', path) ??
      faults.strike('slow-body', path);
    if (spoiling !== undefined) spoilings.set(request, spoiling);
    return undefined;
  });

  app.addHook('onSend', async (request, reply, payload) => {
    const skew = faults.strike('clock-skew', pathOf(request));
    if (skew !== undefined) {
      reply.header('date', new Date(nowMs() + skew.skewSeconds * 1000).toUTCString());
    }
    const spoiling = spoilings.get(request);
    if (spoiling === undefined || typeof payload !== 'string') return payload;
    return spoil(request, reply, { spoiling, payload });
  });
}

/** True when the client cannot read the answer to a request. */
export function isLost(spoilings: Spoilings, request: FastifyRequest): boolean {
  const type = spoilings.get(request)?.type;
  return type === 'lost-answer' || type === 'html' || type === 'truncated-body';
}

function spoil(
  request: FastifyRequest,
  reply: FastifyReply,
  { spoiling, payload }: { spoiling: Spoiling; payload: string },
): string | Readable {
  switch (spoiling.type) {
    case 'lost-answer':
      reply.code(spoiling.status).type('application/json').removeHeader('content-length');
      return JSON.stringify({ Message: 'Endpoint request timed out' });
    case 'html':
      reply.code(200).type('text/html').removeHeader('content-length');
      return HTML;
    case 'wrong-content-type':
      reply.type('text/plain');
      return payload;
    case 'truncated-body':
      reply.header('content-length', Buffer.byteLength(payload));
      return Readable.from(half(request, payload));
    case 'slow-body':
      reply.removeHeader('content-length');
      return Readable.from(slowly(payload, spoiling.ms));
    default:
      return spoiling satisfies never;
  }
}

async function* half(request: FastifyRequest, payload: string): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(payload);
  yield bytes.subarray(0, bytes.length >> 1);
  await delay(1);
  request.raw.socket.destroy();
}

async function* slowly(payload: string, ms: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(payload);
  const length = Math.ceil(bytes.length / SLOW_PIECES);
  for (let piece = 0; piece < SLOW_PIECES; piece++) {
    await delay(ms / SLOW_PIECES);
    yield bytes.subarray(piece * length, (piece + 1) * length);
  }
}

/** An answer of a gateway in front of the service: no code, no Problem. */
function sendBare(reply: FastifyReply, status: number): FastifyReply {
  return reply
    .code(status)
    .type('application/json')
    .send(JSON.stringify({ Message: 'Service Unavailable' }));
}
