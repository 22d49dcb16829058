import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { createPostgresInbox } from '../../consumer/src/index.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { testPrefix } from '../support/daemon.ts';
import { killByTurns, reportedAndFound } from '../support/kill-by-turns.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { freePort } from '../support/port.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { Program } from '../support/program.ts';
import { WEBHOOK_SECRET } from '../support/webhook-receiver.ts';

const { later, started, child } = opening();

const EVENTS = 2_000;
const KILLS = 30;
const INBOX_PROGRAM = new URL('../support/inbox-program.ts', import.meta.url).pathname;

const POSTGRES = needs(PARTS.postgres);

/** A consumer that can be killed and restarted on its port; `counts` counts the lines of all its processes. */
class KilledConsumer {
  readonly #env: Record<string, string>;
  readonly counts = new Map<string, number>();
  #program: Program | null = null;
  #waiting: { what: string; resolve: () => void }[] = [];

  constructor(env: Record<string, string>) {
    this.#env = env;
  }

  async start(): Promise<void> {
    const program = await Program.start(INBOX_PROGRAM, [], this.#env);
    this.#program = program;
    program.onLine((line) => {
      const [what = ''] = line.split(' ');
      this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
      const reached = this.#waiting.filter((one) => one.what === what);
      this.#waiting = this.#waiting.filter((one) => one.what !== what);
      for (const { resolve } of reached) resolve();
    });
    await program.line(/^listening/);
  }

  async next(what: string): Promise<void> {
    return new Promise((resolve) => this.#waiting.push({ what, resolve }));
  }

  async kill(): Promise<void> {
    await this.#program?.end('SIGKILL');
  }
}

test.skipIf(POSTGRES.skip)(
  `consumer and daemon are killed by turns ${KILLS} times in ${EVENTS} events, and each event has its effect once${POSTGRES.note}`,
  async () => {
    const postgres = await PostgresProcess.start();
    later(() => postgres.close());
    const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
    later(() => pool.end());
    await createPostgresInbox({ pool }).createTables();
    // Only the inbox prevents a duplicate effect.
    await pool.query('CREATE TABLE effects (event_id text NOT NULL, subject text NOT NULL)');
    const effects = async (): Promise<number> => {
      const { rows } = await pool.query<{ count: string }>('SELECT count(*) FROM effects');
      return Number(rows[0]?.count);
    };

    const port = String(await freePort());
    const consumer = new KilledConsumer({
      POSTGRES_URL: postgres.url,
      WEBHOOK_SECRET,
      PORT: port,
      ...(process.env.WITHOUT_INBOX === undefined ? {} : { WITHOUT_INBOX: process.env.WITHOUT_INBOX }),
    });
    await consumer.start();
    later(() => consumer.kill());

    const sandbox = await started(
      new Sandbox({ seed: 13, wallets: 20, transfersPerSecond: 0, timeScale: 60 }),
    );
    const prefix = testPrefix();
    const retries = { delays: Array.from({ length: 90 }, () => '2s'), jitter: 0 };
    const daemon = child({
      baseUrl: sandbox.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { inbox: { url: `http://127.0.0.1:${port}/hooks`, more: { retries, concurrency: 10 } } },
      subscriptions: [{ name: 's', wallets: sandbox.subjects().wallets, receivers: ['inbox'] }],
    });
    await daemon.start();

    await killByTurns({
      sandbox,
      events: EVENTS,
      kills: KILLS,
      arrived: effects,
      kill: async (turn) => {
        // Alternates between two times: the effect is not stored yet; the stored event is not answered yet.
        await consumer.next(turn % 4 < 2 ? 'new' : 'begun');
        const victim = turn % 2 === 0 ? daemon : consumer;
        await victim.kill();
        await victim.start();
      },
    });
    const handled = async (): Promise<string[]> => {
      const { rows } = await pool.query<{ event_id: string }>('SELECT event_id FROM effects');
      return rows.map(({ event_id }) => event_id);
    };
    const { reported, found } = await reportedAndFound(prefix, { events: EVENTS, find: handled });
    expect(found.sort()).toEqual(reported.sort());
    // Otherwise the test proves nothing: some were killed before they were stored, some between that and their answer.
    const { begun = 0, new: fresh = 0, again = 0 } = Object.fromEntries(consumer.counts);
    console.log(
      `${reported.length} events, ${begun} handlers begun, ${fresh} ended, ${again} came again after that`,
    );
    expect(begun).toBeGreaterThan(reported.length);
    expect(again).toBeGreaterThan(0);
  },
  1_500_000,
);
