import { setImmediate as turn } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Faults } from '../faults/faults.ts';
import { isUnder } from '../world/path.ts';
import type { Chains } from './chains.ts';
import { EVM_METHODS } from './evm-rpc.ts';
import { type Methods, rpcRequestSchema, type View } from './rpc.ts';
import { RpcError } from './rpc-error.ts';
import { SOLANA_METHODS } from './solana-rpc.ts';

/** Number of calls: chain id → endpoint → method → calls. */
export type RpcCalls = Record<string, Record<string, Record<string, number>>>;

/** Endpoints of all chains; every requested name is one. */
export type RpcPort = {
  /** Adds `POST /chains/<chainId>/<endpoint>` to a port. */
  addTo(app: FastifyInstance): void;
  calls(): RpcCalls;
};

const MOST_ENDPOINTS = 1_000;
const LARGEST_BATCH = 100;

const paramsSchema = z.object({
  chainId: z.string().regex(/^\d{1,15}$/),
  endpoint: z.string().regex(/^[a-zA-Z0-9._-]{1,50}$/),
});

type RpcResponse = Record<string, unknown>;

/** True when a path belongs to a chain. */
export function isOfChains(path: string): boolean {
  return isUnder(path, '/chains');
}

/** Answers a refusal of a transport fault in the form of JSON-RPC. */
export function refuseRpc(
  reply: FastifyReply,
  { status, title }: { status: number; title: string },
): FastifyReply {
  return reply.code(status).send({ jsonrpc: '2.0', id: null, error: { code: -32005, message: title } });
}

export function createRpcPort(deps: { chains: Chains; faults: Faults; nowMs: () => number }): RpcPort {
  const { chains, faults, nowMs } = deps;
  // Callers choose the names: in a map, a name never collides with a member of every object.
  const calls = new Map<string, Map<string, number>>();

  function count(path: string, method: string): void {
    const ofEndpoint = calls.get(path) ?? new Map<string, number>();
    if (ofEndpoint.size === 0 && calls.size < MOST_ENDPOINTS) calls.set(path, ofEndpoint);
    ofEndpoint.set(method, (ofEndpoint.get(method) ?? 0) + 1);
  }

  function viewOf(chainId: number, path: string): View | undefined {
    const on = chains.all.get(chainId);
    if (on === undefined) return undefined;
    const behindMs = (faults.strike('lagging-head', path)?.seconds ?? 0) * 1000;
    return {
      on,
      ledger: chains.ledger,
      nowMs: nowMs() - behindMs,
      isOtherChain: faults.strike('other-chain', path) !== undefined,
      knowsTags: faults.strike('unknown-tags', path) === undefined,
      hides: faults.strike('null-answers', path) !== undefined,
      contradicts: (about, what) =>
        faults.strikeAlways(`${about}-disagreement`, { path, key: String(what) }) !== undefined,
    };
  }

  async function answer(
    request: unknown,
    where: { chainId: number; path: string; methods: Methods },
  ): Promise<RpcResponse> {
    const parsed = rpcRequestSchema.safeParse(request);
    if (!parsed.success) return failed(null, new RpcError(-32600, 'invalid request'));
    const { id, method, params } = parsed.data;
    const { chainId, path, methods } = where;
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined;
    count(path, run === undefined ? 'other' : method);
    try {
      const fault = faults.strike('rpc-error', path);
      if (fault !== undefined) throw new RpcError(fault.code, 'the node could not answer');
      const view = viewOf(chainId, path);
      if (run === undefined || view === undefined) {
        throw new RpcError(-32601, `the method ${method} does not exist/is not available`);
      }
      await view.on.machine?.catchUp();
      return { jsonrpc: '2.0', id, result: await run(view, params) };
    } catch (error) {
      if (error instanceof RpcError) return failed(id, error);
      throw error;
    }
  }

  return {
    addTo(app) {
      app.post('/chains/:chainId/:endpoint', async (request, reply) => {
        const named = paramsSchema.safeParse(request.params);
        const on = named.success ? chains.all.get(Number(named.data.chainId)) : undefined;
        if (!named.success || on === undefined) {
          return reply.code(404).send({ message: 'no such chain, see GET /chains at the control port' });
        }
        const { chainId } = on.chain;
        const path = `/chains/${chainId}/${named.data.endpoint}`;
        const methods = on.chain.kind === 'solana' ? SOLANA_METHODS : EVM_METHODS;
        const where = { chainId, path, methods };
        const { body } = request;
        if (!Array.isArray(body)) return reply.send(await answer(body, where));
        if (body.length === 0 || body.length > LARGEST_BATCH) {
          const message = `found a batch of ${body.length}, expected 1 to ${LARGEST_BATCH}`;
          return reply.send(failed(null, new RpcError(-32600, message)));
        }
        const answers: RpcResponse[] = [];
        for (const one of body) {
          answers.push(await answer(one, where));
          await turn();
        }
        return reply.send(answers);
      });
    },
    calls() {
      const tree: RpcCalls = {};
      for (const [path, methods] of calls) {
        const [, , chainId = '', endpoint = ''] = path.split('/');
        tree[chainId] = { ...tree[chainId], [endpoint]: Object.fromEntries(methods) };
      }
      return tree;
    },
  };
}

function failed(id: unknown, { code, message, data }: RpcError): RpcResponse {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } };
}
