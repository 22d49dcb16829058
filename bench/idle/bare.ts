import { parseArgs } from 'node:util';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'undici';

/** Minimal daemon that waits for work: a worker of BullMQ that would send what it claims by undici. */
const { values } = parseArgs({
  options: { redis: { type: 'string', default: '' }, receiver: { type: 'string', default: '' } },
});
const connection = new Redis(values.redis, { maxRetriesPerRequest: null });
const pool = new Pool(values.receiver);
const queue = new Queue('bare', { connection, prefix: '{bare}' });
const worker = new Worker(
  'bare',
  async ({ data }) => pool.request({ path: '/', method: 'POST', body: data }),
  {
    connection,
    prefix: '{bare}',
  },
);
worker.on('error', (error) => console.error(error.message));
await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
console.log('waiting');
