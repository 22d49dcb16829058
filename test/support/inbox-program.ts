import { createServer } from 'node:http';
import pg from 'pg';
import { createConsumer, createPostgresInbox, nodeHandler } from '../../consumer/src/index.ts';

// A consumer in a process of its own, with its inbox and its effects in Postgres. Prints a line when it listens, and for
// each webhook `begun` within its transaction, then `new` or `again` when that has ended and before the answer.
// POSTGRES_URL, WEBHOOK_SECRET, PORT; WITHOUT_INBOX=1 writes effects in a transaction of its own.

/** Length of each of the two steps in which a crash is most likely to do harm. */
const PAUSE_MS = 30;

const pool = new pg.Pool({ connectionString: process.env.POSTGRES_URL, max: 20 });
pool.on('error', () => undefined);
const postgres = createPostgresInbox({ pool });
const wait = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

function emit(what: string, id: string): void {
  process.stdout.write(`${what} ${id}\n`);
}

const inbox: typeof postgres = {
  ...postgres,
  async run(event, handle) {
    const isNew = await (process.env.WITHOUT_INBOX === '1'
      ? withoutInbox(handle)
      : postgres.run(event, handle));
    emit(isNew ? 'new' : 'again', event.id);
    await wait();
    return isNew;
  },
};

/** Handles a webhook as a consumer does that ignores ids. */
async function withoutInbox(handle: Parameters<typeof postgres.run>[1]): Promise<boolean> {
  const client = await pool.connect();
  await client.query('BEGIN');
  await handle(client, { fact: 'status', lastSequence: null, isStale: false, isRecordStale: false });
  await client.query('COMMIT');
  client.release();
  return true;
}

const consumer = createConsumer({ secrets: process.env.WEBHOOK_SECRET ?? '', inbox }).on(
  '*',
  async (event, { tx }) => {
    await tx.query('INSERT INTO effects (event_id, subject) VALUES ($1, $2)', [
      event.id,
      event.data.subject.id,
    ]);
    emit('begun', event.id);
    await wait();
  },
);

const server = createServer(nodeHandler(consumer));
server.listen(Number(process.env.PORT), '127.0.0.1', () => emit('listening', String(process.env.PORT)));
