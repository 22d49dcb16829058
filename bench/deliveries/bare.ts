import { createHmac } from 'node:crypto';
import { parseArgs } from 'node:util';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'undici';

const ADDED_AT_ONCE = 1_000;
const KEY = Buffer.alloc(32, 5);

/** Minimal delivery: BullMQ claims a job with the event, undici sends it, signed. Adds the jobs, prints a line, then works. */
const { values } = parseArgs({
  options: {
    redis: { type: 'string' },
    receiver: { type: 'string' },
    events: { type: 'string' },
    body: { type: 'string' },
    concurrency: { type: 'string' },
  },
});
const concurrency = Number(values.concurrency);
const connection = new Redis(values.redis ?? '', { maxRetriesPerRequest: null });
const pool = new Pool(values.receiver ?? '', { connections: concurrency });
const queue = new Queue<{ id: string; body: string }>('bare', { connection, prefix: '{bare}' });
const count = Number(values.events);
for (let from = 0; from < count; from += ADDED_AT_ONCE) {
  await queue.addBulk(
    Array.from({ length: Math.min(ADDED_AT_ONCE, count - from) }, (_, at) => ({
      name: 'event',
      data: { id: `evt_${from + at}`, body: values.body ?? '' },
      opts: { removeOnComplete: true, removeOnFail: true },
    })),
  );
}
console.log('added');
const worker = new Worker<{ id: string; body: string }>(
  'bare',
  async ({ data: { id, body } }) => {
    const seconds = Math.floor(Date.now() / 1_000);
    const signature = createHmac('sha256', KEY).update(`${id}.${seconds}.${body}`).digest('base64');
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': `v1,${signature}`,
    };
    const answer = await pool.request({ path: '/', method: 'POST', headers, body });
    await answer.body.dump();
    if (answer.statusCode !== 204) throw new Error(`found ${answer.statusCode}, expected 204`);
  },
  { connection, prefix: '{bare}', concurrency },
);
worker.on('error', (error) => console.error(error.message));
