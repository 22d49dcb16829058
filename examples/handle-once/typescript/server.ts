// Receives webhooks and handles each event once: node server.ts events.db
//
// WEBHOOK_SECRET: one or several with spaces between. PORT: 8000 where it is omitted. Node 24 or newer.

import { createServer } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
// In a project of your own: from 'intentwatch-consumer'.
import { createConsumer, createSqliteInbox, nodeHandler } from '../../../consumer/src/index.ts';
import { handle, TABLES } from './handle.ts';

const database = new DatabaseSync(process.argv[2] ?? 'events.db', { timeout: 10_000 });
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
database.exec(TABLES);
const sqlite = createSqliteInbox({ database });
await sqlite.createTables();

const inbox: typeof sqlite = {
  ...sqlite,
  async run(event, work) {
    const isNew = await sqlite.run(event, work);
    console.log(isNew ? 'new' : 'handled', event.id);
    return isNew;
  },
};

const secrets = (process.env.WEBHOOK_SECRET ?? '').split(/\s+/);
const consumer = createConsumer({ secrets, inbox }).on('*', handle);
const server = createServer(nodeHandler(consumer));
server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () =>
  console.log('listening', server.address()),
);
