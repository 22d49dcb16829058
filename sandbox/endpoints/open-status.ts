import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Answering } from '../control/answer-log.ts';
import type { Distortion } from '../faults/distort.ts';
import { lookupKey } from '../world/identifiers.ts';
import { pathOf } from '../world/path.ts';
import type { IntentStatus, StatusRecord } from '../world/record.ts';
import type { Entry, World } from '../world/world.ts';
import { bytes32, fieldErrors } from './fields.ts';
import { refuseOpen } from './open-quotes.ts';

/** The hash of a transaction of any chain. */
const txHash = z.string().regex(/^[A-Za-z0-9]{1,128}$/, { error: 'expected the hash of a transaction' });

const ONE_EXPECTED = 'expected one of intentHash, intentCreatedHash and fulfillmentHash';

const oneSchema = z
  .strictObject({
    intentHash: bytes32.optional(),
    intentCreatedHash: txHash.optional(),
    fulfillmentHash: txHash.optional(),
  })
  .refine((body) => Object.values(body).filter((value) => value !== undefined).length === 1, {
    error: ONE_EXPECTED,
  });

const MOST = 100;

const manySchema = z.strictObject({ intentHashes: z.array(bytes32).min(1).max(MOST) });

/** The sub-status of an intent, in the status that contains it. A status of no intent passes as a sub-status. */
function statusOf(status: StatusRecord['status']): object {
  switch (status as IntentStatus) {
    case 'pending':
      return { Pending: 'WaitingToFulfill' };
    case 'expired':
    case 'failed':
    case 'refundable':
      return { Pending: 'WaitingForRefund' };
    case 'filled':
    case 'settled':
      return { Completed: 'Fulfilled' };
    case 'refunded':
      return { Completed: 'Refunded' };
    default:
      return { Pending: status };
  }
}

/** The record of an intent in this service's form: a transaction that has not happened is null. */
function openRecord({ id, status, sourceTx, destinationTx, steps = [] }: StatusRecord): object {
  const refund = steps.map(({ transactions }) => transactions.refunded).find((one) => one !== undefined);
  const shown = [sourceTx, destinationTx, refund].map((tx) =>
    tx === undefined ? null : { chainId: tx.chainId, transactionHash: tx.txHash },
  );
  const [intentCreated = null, fulfillment = null, refunded = null] = shown;
  const intentHash = id.slice('intent:'.length);
  return { intentHash, status: statusOf(status), intentCreated, fulfillment, refund: refunded };
}

/** Adds `POST /api/v3/intents/intentStatus` and `POST /api/v3/intents/status`: statuses of intents without a key. */
export function addOpenStatus(
  app: FastifyInstance,
  { world, answering, distortion }: { world: World; answering: Answering; distortion: Distortion },
): void {
  function find({ intentHash, intentCreatedHash, fulfillmentHash }: z.infer<typeof oneSchema>) {
    if (intentCreatedHash !== undefined) return world.intentsBySourceTx(intentCreatedHash)[0];
    if (fulfillmentHash !== undefined) return world.intentsByDestinationTx(fulfillmentHash)[0];
    return world.intent(intentHash ?? '');
  }

  function shownAt(path: string, found: readonly (Entry<StatusRecord> | undefined)[]): Entry<StatusRecord>[] {
    return found.flatMap((entry) =>
      entry === undefined || distortion.hides(path) ? [] : [distortion.entry(entry, path)],
    );
  }

  app.post('/api/v3/intents/intentStatus', (request, reply) => {
    const parsed = oneSchema.safeParse(request.body);
    if (!parsed.success) return refuseOpen(reply, { statusCode: 400, errors: fieldErrors(parsed.error) });
    const shown = shownAt(pathOf(request), [find(parsed.data)]);
    const [entry] = shown;
    if (entry === undefined) {
      const [[field, value = ''] = ['intentHash']] = Object.entries(parsed.data);
      if (field === 'intentHash') answering.noteUnknown(request, reply, `intent:${lookupKey(value)}`);
      return refuseOpen(reply, { statusCode: 404, errors: [{ field, detail: 'No intent has this hash' }] });
    }
    return answering.send(request, reply, { body: { data: openRecord(entry.record) }, shown, isPage: false });
  });

  app.post('/api/v3/intents/status', (request, reply) => {
    const parsed = manySchema.safeParse(request.body);
    if (!parsed.success) return refuseOpen(reply, { statusCode: 400, errors: fieldErrors(parsed.error) });
    const found = [...new Set(parsed.data.intentHashes)].map((intentHash) => find({ intentHash }));
    const shown = shownAt(pathOf(request), found);
    if (shown.length === 0) {
      const errors = [{ field: 'intentHashes', detail: 'No intent has one of these hashes' }];
      return refuseOpen(reply, { statusCode: 404, errors });
    }
    const data = shown.map(({ record }) => openRecord(record));
    return answering.send(request, reply, { body: { data }, shown, isPage: true });
  });
}
