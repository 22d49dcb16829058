import type { DatabaseSync } from 'node:sqlite';
// In a project of your own: from 'intentwatch-consumer'.
import type { AnyEvent, InboxContext } from '../../../consumer/src/index.ts';

/** The facts of the events, a table for each kind of fact. `effects` has one row for each event that was handled. */
export const TABLES = `
CREATE TABLE IF NOT EXISTS subjects (subject TEXT PRIMARY KEY, status TEXT, destination_tx TEXT);
CREATE TABLE IF NOT EXISTS proofs (subject TEXT, payment TEXT, verdict TEXT, tx_hash TEXT, PRIMARY KEY (subject, payment));
CREATE TABLE IF NOT EXISTS reminders (subject TEXT PRIMARY KEY, reminder TEXT, status TEXT);
CREATE TABLE IF NOT EXISTS routes (subject TEXT PRIMARY KEY, status TEXT, output TEXT);
CREATE TABLE IF NOT EXISTS notices (event_id TEXT PRIMARY KEY, subject TEXT, type TEXT);
CREATE TABLE IF NOT EXISTS effects (event_id TEXT NOT NULL, subject TEXT NOT NULL);
`;

/** Handles an event of any kind. For any order of the events, the tables are the same in the end. */
export function handle(
  event: AnyEvent,
  { tx, fact, isStale, isRecordStale }: InboxContext<DatabaseSync>,
): void {
  const { id, type, data } = event;
  const subject = data.subject.id;
  const word = type.slice(type.indexOf('.') + 1);
  tx.prepare('INSERT INTO effects VALUES (?, ?)').run(id, subject);

  // A status and an update have the whole record. An update that overtakes a status has the newer record, not its status.
  if ((fact === 'status' || fact === 'update') && !isRecordStale) {
    tx.prepare(
      `INSERT INTO subjects (subject, destination_tx) VALUES (?, ?)
         ON CONFLICT (subject) DO UPDATE SET destination_tx = excluded.destination_tx`,
    ).run(subject, data.transfer?.destination?.txHash ?? null);
  }
  if (isStale) return;
  switch (fact) {
    case 'status':
      tx.prepare(
        `INSERT INTO subjects (subject, status) VALUES (?, ?)
           ON CONFLICT (subject) DO UPDATE SET status = excluded.status`,
      ).run(subject, data.status);
      return;
    case 'update':
      return;
    case 'proof':
      tx.prepare('INSERT OR REPLACE INTO proofs VALUES (?, ?, ?, ?)').run(
        subject,
        data.proof?.payment ?? '',
        word,
        data.proof?.txHash ?? null,
      );
      return;
    case 'reminder':
      // It applies while the status of the subject is the one that it names.
      tx.prepare('INSERT OR REPLACE INTO reminders VALUES (?, ?, ?)').run(subject, word, data.status);
      return;
    case 'route':
      tx.prepare('INSERT OR REPLACE INTO routes VALUES (?, ?, ?)').run(
        subject,
        data.status,
        typeof data.record.output === 'string' ? data.record.output : null,
      );
      return;
    case 'notice':
      tx.prepare('INSERT INTO notices VALUES (?, ?, ?)').run(id, subject, type);
      return;
    default:
      fact satisfies never;
  }
}
