import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { DAY_MS, FIRST_MS, reportedEvent } from '../support/books-stage.ts';
import { testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { hashOf, ScriptedUpstream } from '../support/scripted-upstream.ts';

const OPTIONAL = needs(PARTS.postgres);

const { later, started, child } = opening();

const TURNS = 30;
const PER_TURN = 250;

test.skipIf(OPTIONAL.skip)(
  `takes every event into a Postgres once that is killed by turns with the daemon${OPTIONAL.note}`,
  { timeout: 1_800_000 },
  async () => {
    const upstream = await started(new ScriptedUpstream(() => ({ records: [] })));
    const hook = await started(new Hook());
    const postgres = await PostgresProcess.start();
    later(() => postgres.close());
    const prefix = testPrefix();
    const keys = new Keys(prefix);
    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    later(() => disconnect(redis));
    const daemon = child({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { backend: { url: hook.url } },
      subscriptions: [{ name: 's', intents: [hashOf(77)], receivers: ['backend'] }],
      more: { books: { url: postgres.url } },
    });
    const query = async (text: string): Promise<number> => {
      const client = new pg.Client({ connectionString: postgres.url });
      client.on('error', () => undefined);
      await client.connect();
      try {
        return Number((await client.query(text)).rows[0]?.n ?? 0);
      } finally {
        await client.end();
      }
    };
    const stored = (): Promise<number> => query('SELECT count(*) AS n FROM books_events').catch(() => 0);
    let appended = 0;
    const append = async (): Promise<void> => {
      const pipeline = redis.pipeline();
      for (let index = 0; index < PER_TURN; index += 1) {
        appended += 1;
        const event = reportedEvent({
          transfer: Math.ceil(appended / 2),
          sequence: appended % 2 === 1 ? 1 : 2,
          status: appended % 2 === 1 ? 'pending' : 'filled',
          atMs: appended * 1_000,
          seenMs: appended * 1_000,
          amount: 1_000_000n,
        });
        pipeline.xadd(
          keys.events,
          '*',
          'kind',
          'event',
          'event',
          JSON.stringify(event),
          'claimKeys',
          '["s|wallet:0x1"]',
        );
      }
      await pipeline.exec();
    };
    await daemon.start();
    for (let turn = 0; turn < TURNS; turn += 1) {
      const before = await stored();
      await append();
      // In the middle of the newly appended events, as far as possible.
      await eventually('some of it is ingested', async () => (await stored()) > before);
      if (turn % 2 === 0) {
        await postgres.kill();
        await append();
        await postgres.startAgain();
      } else {
        await daemon.kill();
        await append();
        await daemon.start();
      }
    }
    await eventually('all is ingested', async () => (await stored()) === appended, 600_000);
    expect(await query('SELECT count(DISTINCT event_id) AS n FROM books_events')).toBe(appended);
    expect(await query("SELECT count(*) AS n FROM books_postings WHERE side = 'started'")).toBe(appended / 2);
    expect(await query("SELECT count(*) AS n FROM books_postings WHERE side = 'ended'")).toBe(appended / 2);
    expect(await query('SELECT count(*) AS n FROM books_breaks')).toBe(0);
    expect(FIRST_MS + appended * 1_000).toBeLessThan(FIRST_MS + 3 * DAY_MS);
  },
);
