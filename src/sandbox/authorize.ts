import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendProblem } from './problem.ts';

/**
 * Creates the check of `x-api-key` that comes before every answer. Under `/v1` a wrong key is refused everywhere, even
 * where none is needed; a missing one is refused by the gateway, except at the deposit vaults. Elsewhere keys are ignored.
 */
export function createAuthorization({ apiKey }: { apiKey: string }) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const path = pathOf(request);
    if (!isUnder(path, '/v1')) return undefined;
    const given = request.headers['x-api-key'];
    if (given === apiKey) return undefined;
    if (given !== undefined) return sendProblem(request, reply, { code: 'invalid-api-key' });
    if (isUnder(path, '/v1/deposit-gateway')) return undefined;
    return reply
      .code(403)
      .type('application/json')
      .send(JSON.stringify({ Message: 'User is not authorized to access this resource' }));
  };
}

/** The path of a request, without its query. */
export function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? '';
}

/** Whether a path is `prefix` or lies under it. */
export function isUnder(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}
