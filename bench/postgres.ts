import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { z } from 'zod';
import { tableDefinition } from '../src/notifiers/postgres/table.ts';
import { eventually } from '../test/support/eventually.ts';
import { PostgresProcess } from '../test/support/postgres-process.ts';
import { Program } from '../test/support/program.ts';
import { Stage } from './deliveries/stage.ts';
import { median, printTargets } from './detection/targets.ts';

const OPTIONS = {
  rounds: { type: 'string', default: '3' },
  events: { type: 'string', default: '10000' },
  profile: { type: 'string' },
} as const;
const COUNT = z.coerce.number().int().min(1);

const WALLETS = 40;
const BUDGET = 80;

const LEAST_SPEED = 0.5;
const LONGEST_MS = 600_000;

const TABLES = { ours: 'intentwatch_events', bare: 'bare_events' };

type Size = { events: number; profile: string | null };

/** Contents of a table at the end. Rows a second, by the time of insert. */
type Found = { perSecond: number; rows: number; ids: number; outOfOrder: number };

/**
 * Measures the rows a second that the shipped daemon inserts into Postgres, of events that are stored and wait. A bare loop
 * inserts the same rows one by one, in the same run and the same server. The server does not wait for the disk: the bare loop
 * is then at its fastest.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size: Size = {
    events: COUNT.parse(values.events),
    profile: values.profile ?? null,
  };
  const found: Record<keyof typeof TABLES, Found[]> = { ours: [], bare: [] };
  for (let round = 1; round <= COUNT.parse(values.rounds); round += 1) {
    // A drift with time (a busy machine) affects both, and neither always comes first.
    const order = round % 2 === 1 ? (['bare', 'ours'] as const) : (['ours', 'bare'] as const);
    for (const kind of order) {
      const one = kind === 'bare' ? await bare(size) : await ours(size);
      found[kind].push(one);
      console.log(`round ${round}, ${kind}: ${one.perSecond.toFixed(0)} rows/s`);
    }
  }
  const speed = (all: readonly Found[]): number => median(all.map(({ perSecond }) => perSecond));
  console.log(`rows a second: ours ${speed(found.ours).toFixed(0)}, bare ${speed(found.bare).toFixed(0)}`);
  const missing = found.ours.map(({ ids }) => size.events - ids);
  const twice = found.ours.map(({ ids, rows }) => rows - ids);
  const outOfOrder = found.ours.map((one) => one.outOfOrder);
  return printTargets([
    {
      what: 'rows a second over those of the bare loop',
      found: speed(found.ours) / speed(found.bare),
      least: LEAST_SPEED,
    },
    { what: 'events without a row', found: Math.max(...missing), most: 0 },
    { what: 'rows too many', found: Math.max(...twice), most: 0 },
    { what: 'rows before one of an earlier event', found: Math.max(...outOfOrder), most: 0 },
  ])
    ? 0
    : 1;
}

async function onServer(table: string, use: (url: string, pool: pg.Pool) => Promise<void>): Promise<Found> {
  const server = await PostgresProcess.start();
  const pool = new pg.Pool({ connectionString: server.url, max: 1 });
  try {
    await pool.query(tableDefinition(table));
    await use(server.url, pool);
    return await foundIn(pool, table);
  } finally {
    await pool.end();
    await server.close();
  }
}

/** Runs a daemon that has all events stored when its receiver is resumed. */
async function ours({ events, profile }: Size): Promise<Found> {
  return onServer(TABLES.ours, async (url, pool) => {
    await Stage.use(async (stage) => {
      const wallets = Array.from({ length: WALLETS }, (_, at) => at);
      const receiver = { type: 'postgres', url, allowInsecure: true };
      const routes = [{ name: 'backend', wallets, receiver }];
      await stage.store(events, { wallets: WALLETS, requestsPerSecond: BUDGET, profile, routes });
      await stage.act('resume');
      const count = async (): Promise<number> => COUNTED.parse((await pool.query(COUNT_ROWS)).rows)[0].count;
      await eventually(`${events} rows are there`, async () => (await count()) >= events, LONGEST_MS);
    });
  });
}

async function bare({ events }: Size): Promise<Found> {
  return onServer(TABLES.bare, async (url) => {
    const program = await Program.start(join(import.meta.dirname, 'postgres/bare.ts'), [
      ...[`--url=${url}`, `--table=${TABLES.bare}`, `--events=${events}`],
    ]);
    try {
      await program.line(/inserted/);
    } finally {
      await program.end('SIGKILL');
    }
  });
}

const COUNTED = z.tuple([z.object({ count: z.number() })]);
const COUNT_ROWS = `SELECT count(*)::int AS count FROM ${TABLES.ours}`;
const SUMS = z.tuple([
  z.object({ rows: z.number(), ids: z.number(), seconds: z.number(), outOfOrder: z.number() }),
]);

async function foundIn(pool: pg.Pool, table: string): Promise<Found> {
  const { rows } = await pool.query(`
    SELECT count(*)::int AS rows, count(DISTINCT id)::int AS ids,
      extract(epoch FROM max(inserted_at) - min(inserted_at))::float AS seconds,
      count(*) FILTER (WHERE position < before)::int AS "outOfOrder"
    FROM (SELECT *, lag(position) OVER (ORDER BY number) AS before FROM ${table}) AS all_rows`);
  const [{ rows: count, seconds, ...sums }] = SUMS.parse(rows);
  return { rows: count, ...sums, perSecond: (count - 1) / seconds };
}
