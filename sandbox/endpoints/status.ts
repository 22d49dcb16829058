import type { FastifyInstance } from 'fastify';
import type { Answering } from '../control/answer-log.ts';
import type { Distortion } from '../faults/distort.ts';
import { lookupKey } from '../world/identifiers.ts';
import { pathOf } from '../world/path.ts';
import type { StatusRecord } from '../world/record.ts';
import type { PageQuery } from '../world/wallet-index.ts';
import type { Entry, World } from '../world/world.ts';
import { encodeCursor } from './cursor.ts';
import { sendInvalidRequest } from './problem.ts';
import { type ExactFilter, parseStatusQuery } from './status-query.ts';

type Found = { entries: Entry<StatusRecord>[]; nextCursor: string | null };

/** Adds `GET /v1/intents/status`. */
export function addStatus(
  app: FastifyInstance,
  { world, answering, distortion }: { world: World; answering: Answering; distortion: Distortion },
): void {
  app.get('/v1/intents/status', (request, reply) => {
    const query = parseStatusQuery(request.query);
    if (query.type === 'invalid') return sendInvalidRequest(request, reply, query.errors);
    const path = pathOf(request);
    const isContinued = query.type === 'page' && query.page.before !== null;
    if (isContinued && distortion.isCursorExpired(path, query.issuedMs)) {
      return sendInvalidRequest(request, reply, [{ field: 'cursor', detail: 'The cursor has expired' }]);
    }
    const { entries, nextCursor } =
      query.type === 'page' ? findPage(query.page, path) : findExactly(query, path);
    const shown = entries.map((entry) => distortion.entry(entry, path));
    return answering.send(request, reply, {
      body: { results: shown.map((entry) => entry.record), nextCursor },
      shown,
      isPage: query.type === 'page',
    });
  });

  function findPage(query: PageQuery, path: string): Found {
    const oldestFirst = distortion.isOldestFirst(path);
    const { entries, before } = world.walletPage({ ...query, oldestFirst });
    const shown = distortion.page(entries, {
      path,
      list: `${query.status} ${lookupKey(query.wallet)}`,
      current: (id) => world.intent(id.slice('intent:'.length)),
    });
    if (before === null) return { entries: shown, nextCursor: null };
    const isRepeated = query.before !== null && distortion.repeatsCursor(path);
    const nextCursor = encodeCursor({
      ...query,
      before: isRepeated ? (query.before ?? before) : before,
      issuedMs: distortion.issuedMs(path),
    });
    return { entries: shown, nextCursor };
  }

  function findExactly({ filter, value }: { filter: ExactFilter; value: string }, path: string): Found {
    const found = distortion.hides(path) ? [] : findRecords(world, filter, value);
    return { entries: found.length === 0 ? [unknownEntry(filter, value)] : found, nextCursor: null };
  }
}

/** Intents that match a filter: several where a transaction funds, or delivers, several. */
function findRecords(world: World, filter: ExactFilter, value: string): Entry<StatusRecord>[] {
  switch (filter) {
    case 'intentHash':
      return listOf(world.intent(value));
    case 'sourceTxHash':
      return world.intentsBySourceTx(value);
    case 'destinationTxHash':
      return world.intentsByDestinationTx(value);
    case 'quoteId':
      return listOf(world.quote(value));
    case 'jobId':
      return listOf(world.job(value));
    default:
      return filter satisfies never;
  }
}

function listOf<T>(entry: T | undefined): T[] {
  return entry === undefined ? [] : [entry];
}

/** The record of an unknown id. For an unknown transaction, the hash takes the place of the intent's. */
function unknownEntry(filter: ExactFilter, value: string): Entry<StatusRecord> {
  const type = filter === 'quoteId' ? 'quote' : filter === 'jobId' ? 'gasless' : 'intent';
  const id = `${type}:${type === 'intent' ? lookupKey(value) : value.toLowerCase()}`;
  return { record: { id, type, status: 'unknown', updatedAt: null }, mention: { id, status: 'unknown' } };
}
