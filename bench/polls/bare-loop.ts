import { parseArgs } from 'node:util';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'undici';

/** Number of jobs that are added at once, and largest number that wait. */
const BATCH = 100;
const MOST_WAITING = 400;

/** Minimal polling: BullMQ claims a job, undici makes the request, the answer is parsed and dropped. Runs until it is ended. */
const { values } = parseArgs({
  options: { redis: { type: 'string' }, upstream: { type: 'string' }, concurrency: { type: 'string' } },
});
const connection = new Redis(values.redis ?? '', { maxRetriesPerRequest: null });
const pool = new Pool(values.upstream ?? '', { connections: 128 });
const queue = new Queue('bare', { connection, prefix: '{bare}' });
let ended = 0;
let added = 0;

async function add(): Promise<void> {
  const jobs = Array.from({ length: BATCH }, () => ({
    name: 'poll',
    data: { hash: `0x${(added++ % 1_000).toString(16).padStart(64, '0')}` },
    opts: { removeOnComplete: true, removeOnFail: true },
  }));
  await queue.addBulk(jobs);
}

const worker = new Worker<{ hash: string }>(
  'bare',
  async (job) => {
    const path = `/v1/intents/status?intentHash=${job.data.hash}`;
    const { body } = await pool.request({ path, method: 'GET', headers: { 'x-api-key': 'sandbox-key' } });
    await body.json();
    ended++;
    if (added - ended < MOST_WAITING && ended % BATCH === 0) await add();
  },
  { connection, prefix: '{bare}', concurrency: Number(values.concurrency ?? 100) },
);
worker.on('error', (error) => console.error(error.message));
while (added < MOST_WAITING) await add();
console.log('started');
