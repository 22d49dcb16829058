import { createHmac } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'undici';

const ADDED_AT_ONCE = 1_000;
const AT_ONCE = 50;
const KEY = Buffer.alloc(32, 5);

/**
 * Minimal delivery: BullMQ claims a job with the event, undici sends it, signed. Events are published before the worker
 * begins (`--publish before`), all at once beside it (`at-once`), or evenly (`paced`, `--per-second`). Prints the time
 * (Unix ms) of its begin.
 */
const { values } = parseArgs({
  options: {
    redis: { type: 'string', default: '' },
    receiver: { type: 'string', default: '' },
    events: { type: 'string', default: '1' },
    publish: { type: 'string', default: 'at-once' },
    'per-second': { type: 'string', default: '1' },
  },
});
const connection = new Redis(values.redis, { maxRetriesPerRequest: null });
const pool = new Pool(values.receiver, { connections: AT_ONCE });
const queue = new Queue<{ id: string; body: string }>('bare', { connection, prefix: '{bare}' });
const count = Number(values.events);
const body = eventText();

/** An event of a filled transfer in the form in which a receiver gets it. */
function eventText(): string {
  const hash = (chainId: number): string => `0x${chainId.toString(16).padStart(64, '5')}`;
  const leg = (chainId: number): object => ({
    chainId,
    txHash: hash(chainId),
    token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    amount: '1250000000',
  });
  const id = `intent:${hash(1)}`;
  const legs = { sourceTx: leg(8453), destinationTx: leg(42161) };
  const record = { id, type: 'intent', status: 'filled', updatedAt: 1_800_000_000, ...legs };
  const subject = { kind: 'intent', id, sequence: 1, epoch: 1 };
  const changes = Object.keys(record).map((path) => ({ path, from: null }));
  const data = { subject, status: 'filled', previousStatus: null, changes, record, subscriptions: ['all'] };
  return JSON.stringify({ id: `evt_${'5'.repeat(64)}`, type: 'intent.filled', timestamp: new Date(), data });
}

async function add(from: number, to: number): Promise<void> {
  const jobs = Array.from({ length: to - from }, (_, at) => ({
    name: 'event',
    data: { id: `evt_${from + at}`, body },
    opts: { removeOnComplete: true, removeOnFail: true },
  }));
  await queue.addBulk(jobs);
}

async function addAll(): Promise<void> {
  for (let from = 0; from < count; from += ADDED_AT_ONCE) {
    await add(from, Math.min(count, from + ADDED_AT_ONCE));
  }
}

async function addEvenly(perSecond: number): Promise<void> {
  const fromMs = performance.now();
  for (let added = 0; added < count; ) {
    const due = Math.min(count, 1 + Math.floor((perSecond * (performance.now() - fromMs)) / 1_000));
    // Not awaited: a publisher does not wait for one event before the next.
    if (due > added) void add(added, due);
    added = due;
    await wait(1);
  }
}

async function work({ data: { id, body: text } }: { data: { id: string; body: string } }): Promise<void> {
  const seconds = Math.floor(Date.now() / 1_000);
  const signature = createHmac('sha256', KEY).update(`${id}.${seconds}.${text}`).digest('base64');
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature}`,
  };
  const answer = await pool.request({ path: '/', method: 'POST', headers, body: text });
  await answer.body.dump();
  if (answer.statusCode !== 204) throw new Error(`found ${answer.statusCode}, expected 204`);
}

if (values.publish === 'before') await addAll();
const workerConnection = new Redis(values.redis, { maxRetriesPerRequest: null });
const worker = new Worker('bare', work, {
  connection: workerConnection,
  prefix: '{bare}',
  concurrency: AT_ONCE,
});
worker.on('error', (error) => console.error(error.message));
await worker.waitUntilReady();
console.log(`began ${performance.timeOrigin + performance.now()}`);
if (values.publish === 'at-once') await addAll();
if (values.publish === 'paced') await addEvenly(Number(values['per-second']));
