import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/file/load.ts';
import { parseRedisUrl } from '../config/sections/redis.ts';
import { type Corridor, corridorsOf } from '../domain/cadence/corridors.ts';
import { quantileSeconds } from '../domain/cadence/hazard.ts';
import type { Knowledge, LearnedStage } from '../domain/cadence/knowledge.ts';
import { arrivalRule, watchRules } from '../domain/cadence/watch-rules.ts';
import { connect, disconnect } from '../store/connection.ts';
import { findEmbedded } from '../store/embedded.ts';
import { Keys } from '../store/keys.ts';
import { LearnedStore } from '../store/learned.ts';
import { SchemaVersion } from '../store/schema-version.ts';
import { withTimeout } from '../with-timeout.ts';
import { CONFIG_DEFAULT } from './start.ts';
import { table } from './table.ts';

type Options = { config: string; json?: true; reset?: string | true };

/** Redis has to answer within this. */
const TIMEOUT_MS = 5_000;

/** `learned`: prints how long stages take on each route, what became of its transfers and how often new ones come, as learned, or has it forgotten. */
export function learnedCommand(): Command {
  return new Command('learned')
    .description(
      'Print what was learned of each route (how long stages take, how many are filled, overdue, refunded) and how often new transfers come, or forget it.',
    )
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .option('--json', 'print JSON')
    .addOption(
      new Option(
        '--reset [route]',
        'forget what was learned, on one route (like 8453:10) or on all',
      ).conflicts('json'),
    )
    .action(learned);
}

async function learned(options: Options): Promise<void> {
  const config = await loadConfig(resolve(options.config), process.env);
  const redis = connect(
    parseRedisUrl(config.redis.url?.reveal() ?? '') ?? (await findEmbedded(config.dataDir)),
  );
  try {
    const keys = new Keys(config.redis.prefix);
    const store = new LearnedStore(redis, keys, { retentionMs: config.retentionMs });
    const read = async (): Promise<string> => {
      await new SchemaVersion(redis, keys).read();
      return answer(options, { config, store });
    };
    const text = await withTimeout(read(), TIMEOUT_MS);
    if (text === null) throw new Error(`Redis gave no answer within ${TIMEOUT_MS / 1_000} s`);
    process.stdout.write(text);
  } finally {
    await disconnect(redis);
  }
}

async function answer(
  { json, reset }: Options,
  { config, store }: { config: Config; store: LearnedStore },
): Promise<string> {
  if (reset !== undefined) {
    const route = reset === true ? null : reset;
    const gone = await store.reset(route);
    if (gone === 0 && route !== null)
      throw new Error(`found nothing learned on ${route}, expected a route of \`learned\``);
    return `forgot ${gone} ${gone === 1 ? 'entry' : 'entries'}\n`;
  }
  const { polling } = config;
  const known = await store.knowledge({ rules: watchRules(polling), arrivals: arrivalRule(polling) });
  return json ? `${JSON.stringify(described(known), null, 2)}\n` : textOf(described(known));
}

function described(known: Knowledge) {
  const { stages, arrivals } = known;
  return {
    corridors: corridorsOf(known),
    stages: stages.toSorted((a, b) => b.observations - a.observations).map(describedStage),
    newTransfers: {
      observations: round(arrivals.observations),
      everySeconds: round(1 / arrivals.usualPerSecond),
    },
  };
}

function describedStage({ route, watch, observations, curve }: LearnedStage) {
  return {
    route,
    stage: watch,
    observations: round(observations),
    medianSeconds: round(quantileSeconds(curve, 0.5)),
    p90Seconds: round(quantileSeconds(curve, 0.9)),
    p99Seconds: round(quantileSeconds(curve, 0.99)),
  };
}

function textOf({ corridors, stages, newTransfers }: ReturnType<typeof described>): string {
  const { observations, everySeconds } = newTransfers;
  if (stages.length === 0 && observations === 0) return 'nothing learned yet\n';
  const rows = stages.map(({ route, stage, observations, medianSeconds, p90Seconds, p99Seconds }) => [
    route,
    stage,
    String(observations),
    `${medianSeconds} s`,
    `${p90Seconds} s`,
    `${p99Seconds} s`,
  ]);
  return [
    ...(rows.length === 0
      ? []
      : [table([['ROUTE', 'STAGE', 'OBSERVED', 'MEDIAN', 'P90', 'P99'], ...rows]), '']),
    ...(corridors.length === 0 ? [] : [corridorTable(corridors), '']),
    `new transfers: one in ${everySeconds} s in a usual wallet, ${observations} observed`,
    '',
  ].join('\n');
}

/** What became of transfers that were seen pending, per pair of chains; shares where enough were. */
function corridorTable(corridors: readonly Corridor[]): string {
  const told = (count: number, share: number | null): string =>
    share === null ? String(count) : `${count} (${round(share * 100)} %)`;
  const rows = corridors.map((one) => [
    one.corridor,
    String(one.filled),
    told(one.unfilled, one.unfilledShare),
    told(one.overdue, one.overdueShare),
    told(one.refunded, one.refundedShare),
  ]);
  return table([['ROUTE', 'FILLED', 'UNFILLED', 'OVERDUE', 'REFUNDED'], ...rows]);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
