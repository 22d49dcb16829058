import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type FinalityLag, finalitySchema } from '../chains/blocks.ts';
import type { StatedPayment } from '../chains/chains.ts';
import { type Faucet, faucetSchema } from '../chains/faucet.ts';
import type { RpcCalls } from '../chains/rpc-port.ts';
import { faultSchema } from '../faults/fault.ts';
import type { Faults } from '../faults/faults.ts';
import type { BoundedLog } from '../world/bounded-log.ts';
import { CHAINS } from '../world/chains.ts';
import { type FundResult, fundSchema } from '../world/funding.ts';
import { type Market, marketSchema } from '../world/market.ts';
import type { Subjects, Transition } from '../world/world.ts';
import type { LoggedAnswer, Showing } from './answer-log.ts';
import type { CameRequest } from './request-log.ts';

/** Births per second now, and the number of transfers with a change still to come. */
export type Pace = { transfersPerSecond: number; livingTransfers: number };

/** A chain with endpoints: its blocks, and the calls of each method at each endpoint. */
export type ChainState = {
  chainId: number;
  name: string;
  head: number;
  finalized: number;
  finality: FinalityLag;
  calls: RpcCalls[string];
};

/** Functions behind the control port. */
export type Controls = {
  subjects(): Subjects;
  logs: {
    transitions: BoundedLog<Transition>;
    answers: BoundedLog<LoggedAnswer>;
    showings: BoundedLog<Showing>;
    requests: BoundedLog<CameRequest>;
    payments: BoundedLog<StatedPayment>;
  };
  pace: { read(): Pace; set(transfersPerSecond: number): void };
  market: { read(): Market; set(change: z.infer<typeof marketSchema>): Market };
  chains: { read(): ChainState[]; set(change: ChainsChange): ChainState[] };
  fund(wanted: z.infer<typeof fundSchema>): FundResult;
  /** Null unless the sandbox was started with a faucet. */
  faucet: Faucet | null;
  faults: Faults;
  /** Rotates the quote key of a chain, or of every chain. */
  rotateSigners(chainId: number | undefined): { chainId: number; quoteSigner: string }[];
};

const sinceSchema = z.object({
  since: z
    .string({ error: 'expected one number of Unix milliseconds' })
    .regex(/^\d{1,15}$/, { error: 'expected Unix milliseconds' })
    .transform(Number)
    .optional(),
});

const paceSchema = z.strictObject({
  transfersPerSecond: z.number({ error: 'expected a number of 0 or more' }).min(0),
});

const anyChain = z
  .int()
  .refine((id) => CHAINS.some((chain) => chain.chainId === id), {
    error: 'expected a chain of GET /v1/chains',
  })
  .optional();

const rotationSchema = z.strictObject({ chainId: anyChain });

const MOST_REORGANISED = 1_000_000;

/** Body of `POST /chains`; without a chain it applies to all. */
const chainsSchema = z.strictObject({
  chainId: anyChain,
  finality: finalitySchema.optional(),
  /** Number of the newest blocks that are replaced; final ones stay. */
  reorganise: z.int().min(1).max(MOST_REORGANISED).optional(),
});

export type ChainsChange = z.infer<typeof chainsSchema>;

/**
 * Creates the control port, for tests and the demo: `GET /subjects`, `GET /transitions`, `GET /answers`, `GET /showings`,
 * `GET /payments` and `GET /requests` (the last five with an optional `?since=<Unix milliseconds>`, inclusive), `GET /pace`
 * and `POST /pace`, `GET /market` and `POST /market`, `GET /chains` and `POST /chains`, `POST /fund`, `POST /faucet`, `POST /rotate-signer`,
 * and `GET`, `POST` and `DELETE` of `/faults`. Each log holds the last 500,000 entries.
 */
export function createControl(controls: Controls): FastifyInstance {
  const app = fastify({ exposeHeadRoutes: false, forceCloseConnections: true });

  function sendLog(
    request: FastifyRequest,
    reply: FastifyReply,
    log: BoundedLog<{ at: number }>,
  ): FastifyReply {
    const query = sinceSchema.safeParse(request.query);
    if (!query.success) return refuseInput(reply, query.error);
    return reply.type('application/json').send(Readable.from(jsonArray(log.read(query.data.since))));
  }

  app.get('/subjects', () => controls.subjects());
  app.get('/transitions', (request, reply) => sendLog(request, reply, controls.logs.transitions));
  app.get('/answers', (request, reply) => sendLog(request, reply, controls.logs.answers));
  app.get('/showings', (request, reply) => sendLog(request, reply, controls.logs.showings));
  app.get('/requests', (request, reply) => sendLog(request, reply, controls.logs.requests));
  app.get('/payments', (request, reply) => sendLog(request, reply, controls.logs.payments));
  app.get('/chains', () => ({ chains: controls.chains.read() }));
  app.post('/chains', (request, reply) => {
    const body = chainsSchema.safeParse(request.body);
    if (!body.success) return refuseInput(reply, body.error);
    return reply.send({ chains: controls.chains.set(body.data) });
  });
  app.get('/pace', () => controls.pace.read());
  app.post('/pace', (request, reply) => {
    const body = paceSchema.safeParse(request.body);
    if (!body.success) return refuseInput(reply, body.error);
    controls.pace.set(body.data.transfersPerSecond);
    return reply.send(controls.pace.read());
  });
  app.get('/market', () => controls.market.read());
  app.post('/market', (request, reply) => {
    const body = marketSchema.safeParse(request.body);
    if (!body.success) return refuseInput(reply, body.error);
    return reply.send(controls.market.set(body.data));
  });
  app.post('/fund', (request, reply) => {
    const body = fundSchema.safeParse(request.body);
    if (!body.success) return refuseInput(reply, body.error);
    const result = controls.fund(body.data);
    if (result.type === 'funded') {
      return reply.send({ intentHash: result.intentHash, sourceTxHash: result.sourceTxHash });
    }
    const { statusCode, message } = result;
    return reply.code(statusCode).send({ statusCode, message, error: STATUS_CODES[statusCode] });
  });
  app.post('/faucet', async (request, reply) => {
    const body = faucetSchema.safeParse(request.body);
    if (!body.success) return refuseInput(reply, body.error);
    const gift = (await controls.faucet?.(body.data)) ?? {
      type: 'refused',
      statusCode: 404,
      message: 'this sandbox has no faucet; start it with --faucet',
    };
    if (gift.type === 'given') return reply.send({ balance: gift.balance });
    const { statusCode, message } = gift;
    return reply.code(statusCode).send({ statusCode, message, error: STATUS_CODES[statusCode] });
  });
  app.get('/faults', () => ({ faults: controls.faults.list() }));
  app.post('/faults', (request, reply) => {
    const body = faultSchema.safeParse(request.body);
    if (!body.success) return refuseInput(reply, body.error);
    return reply.code(201).send(controls.faults.add(body.data));
  });
  app.delete('/faults', () => ({ removed: controls.faults.remove() }));
  app.delete<{ Params: { id: string } }>('/faults/:id', (request, reply) => {
    const removed = controls.faults.remove(Number(request.params.id));
    if (removed > 0) return reply.send({ removed });
    const message = `no fault ${JSON.stringify(request.params.id)}, see GET /faults`;
    return reply.code(404).send({ statusCode: 404, message, error: 'Not Found' });
  });
  app.post('/rotate-signer', (request, reply) => {
    const body = rotationSchema.safeParse(request.body ?? {});
    if (!body.success) return refuseInput(reply, body.error);
    return reply.send({ chains: controls.rotateSigners(body.data.chainId) });
  });
  return app;
}

function refuseInput(reply: FastifyReply, error: z.ZodError): FastifyReply {
  const message = error.issues
    .map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`)
    .join('; ');
  return reply.code(400).send({ statusCode: 400, message, error: 'Bad Request' });
}

/** A JSON array in pieces: as one text, a full log would exceed the length of a string. */
function* jsonArray(entries: readonly unknown[]): Generator<string> {
  const pieceLength = 1_000;
  yield '[';
  for (let start = 0; start < entries.length; start += pieceLength) {
    const piece = entries.slice(start, start + pieceLength).map((entry) => JSON.stringify(entry));
    yield `${start === 0 ? '' : ','}${piece.join(',')}`;
  }
  yield ']';
}
