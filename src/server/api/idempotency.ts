import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { ProblemError } from './problem-error.ts';
import type { Answer, ApiRoute, RouteContext } from './route.ts';

/** The header that names a request. */
const IDEMPOTENCY_KEY = 'idempotency-key';

const KEY = /^[\x21-\x7e]{1,200}$/;

type Asked = {
  route: Pick<ApiRoute, 'method'>;
  call: (context: RouteContext) => Promise<Answer>;
  context: RouteContext;
};

/**
 * Does what is asked. A POST that carries an `Idempotency-Key` is done once: when it is made again, its answer is given
 * again. A request that failed for reasons of ours can be made again.
 */
export async function onlyOnce(request: FastifyRequest, { route, call, context }: Asked): Promise<Answer> {
  const given = request.headers[IDEMPOTENCY_KEY];
  if (route.method !== 'POST' || given === undefined) return call(context);
  if (typeof given !== 'string' || !KEY.test(given)) {
    throw new ProblemError(400, 'Idempotency-Key: expected 1 to 200 visible ASCII characters');
  }
  const key = hash(given);
  const { answers } = context.parts().operations.stores;
  const found = await answers.begin(
    key,
    hash([request.method, request.url, JSON.stringify(request.body ?? null)].join('\n')),
  );
  switch (found.state) {
    case 'answered':
      return {
        status: found.answer.status,
        body: parsed(found.answer.body),
        headers: { 'idempotent-replayed': 'true' },
      };
    case 'underWay':
      throw new ProblemError(
        409,
        'found a request with this Idempotency-Key under way; try again when it has ended',
        {
          'retry-after': '2',
        },
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
    if ('body' in answer)
      await answers.end(key, { status: answer.status, body: JSON.stringify(answer.body) });
    return answer;
  } catch (error) {
    await answers.forget(key);
    throw error;
  }
}

function parsed(text: string): unknown {
  return text === '' ? null : JSON.parse(text);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
