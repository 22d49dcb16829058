import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Encryption } from '../../store/added-receivers.ts';
import { ProblemError } from '../problem.ts';
import { type ApiRoute, acceptsIdempotencyKey, type RouteAnswer, type RouteContext } from './route.ts';

const IDEMPOTENCY_HEADER = 'idempotency-key';

const KEY_PATTERN = /^[\x21-\x7e]{1,200}$/;

type KeyedCall = {
  route: ApiRoute;
  call: (context: RouteContext) => Promise<RouteAnswer>;
  context: RouteContext;
};

/** A repeated request is refused while the first one has no answer, for this time or for the route's timeout and a margin. */
const LEAST_UNDER_WAY_MS = 60_000;
const TIMEOUT_MARGIN_MS = 15_000;

/** Calls a route. A repeated `Idempotency-Key` gets the stored answer. If the call throws, the key can be used again. */
export async function onlyOnce(
  request: FastifyRequest,
  { route, call, context }: KeyedCall,
): Promise<RouteAnswer> {
  const given = request.headers[IDEMPOTENCY_HEADER];
  if (!acceptsIdempotencyKey(route) || given === undefined) return call(context);
  if (typeof given !== 'string' || !KEY_PATTERN.test(given)) {
    throw new ProblemError(400, 'Idempotency-Key: expected 1 to 200 visible ASCII characters');
  }
  const key = hash(given);
  const { operations, apiReceivers } = context.deps();
  const { answers } = operations.stores;
  const encryption = route.answerHasSecret === true ? apiReceivers.encryption : null;
  const found = await answers.begin(key, {
    fingerprint: hash([request.method, request.url, JSON.stringify(request.body ?? null)].join('\n')),
    underWayMs: Math.max(LEAST_UNDER_WAY_MS, (route.timeoutMs ?? 0) + TIMEOUT_MARGIN_MS),
  });
  switch (found.state) {
    case 'answered':
      return {
        status: found.answer.status,
        body: parseBody(decrypted(key, found.answer.body, encryption)),
        headers: { 'idempotent-replayed': 'true' },
      };
    case 'underWay':
      throw new ProblemError(
        409,
        'found a request with this Idempotency-Key under way; try again when it has ended',
        { 'retry-after': '2' },
      );
    case 'other':
      throw new ProblemError(
        422,
        'found an Idempotency-Key that was used for another request, expected a new one',
      );
    case 'full':
      throw new ProblemError(429, 'found too many Idempotency-Keys of the last day, expected fewer', {
        'retry-after': '600',
      });
    case 'new':
      break;
  }
  try {
    const answer = await call({ ...context, key });
    if ('body' in answer) {
      const body = JSON.stringify(answer.body);
      await answers.end(key, {
        status: answer.status,
        body: encryption === null ? body : encryption.encrypt(key, body),
      });
    }
    return answer;
  } catch (error) {
    await answers.remove(key);
    throw error;
  }
}

function decrypted(key: string, body: string, encryption: Encryption | null): string {
  const text = encryption === null ? body : encryption.decrypt(key, body);
  if (text !== null) return text;
  throw new ProblemError(
    409,
    'found an answer that was stored with another server.secretsKey, expected the one that it was stored with',
  );
}

function parseBody(text: string): unknown {
  return text === '' ? null : JSON.parse(text);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
