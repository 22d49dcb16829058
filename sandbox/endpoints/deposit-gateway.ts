import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Answering } from '../control/answer-log.ts';
import type { Distortion } from '../faults/distort.ts';
import { pathOf } from '../world/path.ts';
import { type Entry, vaultKey, type World } from '../world/world.ts';
import { refuse } from './problem.ts';

const ADDRESS = /^0x[a-fA-F0-9]{40}$/;
const CHAIN_ID = /^[1-9]\d{0,14}$/;

type VaultRequest = FastifyRequest<{
  Params: { vaultAddress: string };
  Querystring: { sourceChainId?: string | string[] };
}>;

/** Adds the endpoints that return gasless jobs and vaults, each at both generations of its path. */
export function addDepositGateway(
  app: FastifyInstance,
  { world, answering, distortion }: { world: World; answering: Answering; distortion: Distortion },
): void {
  function answer<R extends object>(
    request: FastifyRequest,
    reply: FastifyReply,
    entry: Entry<R>,
  ): FastifyReply {
    const shown = distortion.entry(entry, pathOf(request));
    return answering.send(request, reply, { body: { data: shown.record }, shown: [shown], isPage: false });
  }

  function fetchVault(request: VaultRequest, reply: FastifyReply): FastifyReply {
    const { vaultAddress } = request.params;
    const { sourceChainId } = request.query;
    if (!ADDRESS.test(vaultAddress)) {
      return refuse(reply, {
        code: 'invalid-request',
        message: `vaultAddress: found ${JSON.stringify(vaultAddress)}, expected 0x and 40 hex digits`,
      });
    }
    if (typeof sourceChainId !== 'string' || !CHAIN_ID.test(sourceChainId)) {
      const found = sourceChainId === undefined ? 'nothing' : JSON.stringify(sourceChainId);
      return refuse(reply, {
        code: 'invalid-request',
        message: `sourceChainId: found ${found}, expected a chain id of 1 or more`,
      });
    }
    const vault = world.vault({ chainId: Number(sourceChainId), address: vaultAddress });
    if (vault === undefined || distortion.hides(pathOf(request))) {
      const key = vaultKey({ chainId: Number(sourceChainId), address: vaultAddress });
      answering.noteUnknown(request, reply, `vault:${key}`);
      return refuse(reply, {
        code: 'not-found',
        message: `no vault ${vaultAddress} on chain ${sourceChainId}`,
      });
    }
    return answer(request, reply, vault);
  }

  function fetchJob(request: FastifyRequest, reply: FastifyReply, id: string): FastifyReply {
    const job = world.gatewayJob(id);
    if (job === undefined || distortion.hides(pathOf(request))) {
      answering.noteUnknown(request, reply, `gasless:gateway:${id}`);
      return refuse(reply, { code: 'not-found', message: `no gasless job ${JSON.stringify(id)}` });
    }
    return answer(request, reply, job);
  }

  app.get<{ Params: { id: string } }>('/deposit-gateway/v1/gasless/jobs/:id', (request, reply) =>
    fetchJob(request, reply, request.params.id),
  );
  app.get<{ Querystring: { id?: string | string[] } }>('/v1/deposit-gateway/status', (request, reply) => {
    const { id } = request.query;
    if (typeof id !== 'string' || id === '') {
      return refuse(reply, { code: 'invalid-request', message: 'id: expected the id of one job' });
    }
    return fetchJob(request, reply, id);
  });
  app.get('/deposit-gateway/v2/depositAddresses/:vaultAddress', fetchVault);
  app.get('/v1/deposit-gateway/:vaultAddress', fetchVault);
}
