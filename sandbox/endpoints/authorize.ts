import type { FastifyReply, FastifyRequest } from 'fastify';
import { isUnder, pathOf } from '../world/path.ts';
import { type ProblemDetails, sendProblem } from './problem.ts';

/**
 * Creates the check of `x-api-key` that precedes every answer. Under `/v1` a wrong key is refused everywhere, even where none
 * is needed; a missing one is refused by the gateway where one is required, except at the deposit vaults. Elsewhere keys are ignored. Three more
 * keys, made of the right one and a suffix, are known but insufficient: `-expired`, `-forbidden` and, at submits alone,
 * `-unattributed`.
 */
export function createAuthorization({ apiKey, requiresKey }: { apiKey: string; requiresKey: boolean }) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const path = pathOf(request);
    if (!isUnder(path, '/v1')) return undefined;
    const given = request.headers['x-api-key'];
    if (given === apiKey) return undefined;
    if (given !== undefined) {
      const problem = refusal({ ending: endingOf(given, apiKey), path });
      return problem === null ? undefined : sendProblem(request, reply, problem);
    }
    if (!requiresKey || isUnder(path, '/v1/deposit-gateway')) return undefined;
    return refuseAtTheGate(reply);
  };
}

/** The suffix of a key after the right one; null for another key. */
function endingOf(given: string | string[], apiKey: string): string | null {
  return typeof given === 'string' && given.startsWith(`${apiKey}-`) ? given.slice(apiKey.length) : null;
}

function refusal({ ending, path }: { ending: string | null; path: string }): ProblemDetails | null {
  switch (ending) {
    case '-expired':
      return { code: 'api-key-expired' };
    case '-forbidden':
      return { code: 'permission-denied' };
    case '-unattributed': {
      const isSubmit = isUnder(path, '/v1/gasless/submit') || isUnder(path, '/v1/deposit-gateway/submit');
      if (!isSubmit) return null;
      return { code: 'invalid-api-key', detail: 'the key could not be attributed to a partner' };
    }
    default:
      return { code: 'invalid-api-key' };
  }
}

/** The gateway's own refusal, which is no Problem: for a request without a key, and for a path that it does not know. */
export function refuseAtTheGate(reply: FastifyReply): FastifyReply {
  const body = { Message: 'User is not authorized to access this resource' };
  return reply.code(403).type('application/json').send(JSON.stringify(body));
}
