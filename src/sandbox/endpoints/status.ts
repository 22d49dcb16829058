import type { FastifyInstance } from 'fastify';
import type { Answering } from '../answer-log.ts';
import { encodeCursor } from '../cursor.ts';
import { lookupKey } from '../identifiers.ts';
import { sendInvalidRequest } from '../problem.ts';
import type { StatusRecord } from '../record.ts';
import type { PageQuery } from '../wallet-index.ts';
import type { Entry, World } from '../world.ts';
import { type ExactFilter, parseStatusQuery } from './status-query.ts';

type Found = { entries: Entry<StatusRecord>[]; nextCursor: string | null };

/** Adds `GET /v1/intents/status`. */
export function addStatus(
  app: FastifyInstance,
  { world, answering }: { world: World; answering: Answering },
): void {
  app.get('/v1/intents/status', (request, reply) => {
    const query = parseStatusQuery(request.query);
    if (query.type === 'invalid') return sendInvalidRequest(request, reply, query.errors);
    const { entries, nextCursor } =
      query.type === 'page' ? findPage(world, query.page) : findExactly(world, query);
    return answering.send(request, reply, {
      body: { results: entries.map((entry) => entry.record), nextCursor },
      subjects: entries.map((entry) => entry.mention),
    });
  });
}

function findPage(world: World, query: PageQuery): Found {
  const { entries, before } = world.walletPage(query);
  return { entries, nextCursor: before === null ? null : encodeCursor({ ...query, before }) };
}

function findExactly(world: World, { filter, value }: { filter: ExactFilter; value: string }): Found {
  const entry = lookUp(world, filter, value) ?? unknownEntry(filter, value);
  return { entries: [entry], nextCursor: null };
}

function lookUp(world: World, filter: ExactFilter, value: string): Entry<StatusRecord> | undefined {
  switch (filter) {
    case 'intentHash':
      return world.intent(value);
    case 'sourceTxHash':
      return world.intentBySourceTx(value);
    case 'destinationTxHash':
      return world.intentByDestinationTx(value);
    case 'quoteId':
      return world.quote(value);
    case 'jobId':
      return world.job(value);
    default:
      return filter satisfies never;
  }
}

/** What is said about an id that was never seen. For an unknown transaction, the hash stands where an intent's would. */
function unknownEntry(filter: ExactFilter, value: string): Entry<StatusRecord> {
  const type = filter === 'quoteId' ? 'quote' : filter === 'jobId' ? 'gasless' : 'intent';
  const id = `${type}:${type === 'intent' ? lookupKey(value) : value.toLowerCase()}`;
  return { record: { id, type, status: 'unknown', updatedAt: null }, mention: { id, status: 'unknown' } };
}
