import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/file/load.ts';
import { parseRedisUrl } from '../config/sections/redis.ts';
import { quantileSeconds } from '../domain/cadence/hazard.ts';
import { type Knowledge, knowledgeOf, type LearnedStage } from '../domain/cadence/knowledge.ts';
import { arrivalRule, watchRules } from '../domain/cadence/watch-rules.ts';
import { connect, disconnect, redisTimeMs } from '../store/connection.ts';
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

/** `learned`: prints how long stages take on each route and how often new transfers come, as learned, or has it forgotten. */
export function learnedCommand(): Command {
  return new Command('learned')
    .description(
      'Print what was learned of how long stages take on each route and how often new transfers come, or forget it.',
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
      return answer(options, { config, store, nowMs: () => redisTimeMs(redis) });
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
  { config, store, nowMs }: { config: Config; store: LearnedStore; nowMs: () => Promise<number> },
): Promise<string> {
  if (reset !== undefined) {
    const route = reset === true ? null : reset;
    const gone = await store.reset(route);
    if (gone === 0 && route !== null)
      throw new Error(`found nothing learned on ${route}, expected a route of \`learned\``);
    return `forgot ${gone} ${gone === 1 ? 'entry' : 'entries'}\n`;
  }
  const rules = watchRules(config.polling);
  const arrivals = arrivalRule(config.polling);
  const known = knowledgeOf(await store.all(), { rules, arrivals, nowMs: await nowMs() });
  return json ? `${JSON.stringify(described(known), null, 2)}\n` : textOf(described(known));
}

function described({ stages, arrivals }: Knowledge) {
  return {
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
    p99Seconds: round(quantileSeconds(curve, 0.99)),
  };
}

function textOf({ stages, newTransfers }: ReturnType<typeof described>): string {
  const { observations, everySeconds } = newTransfers;
  if (stages.length === 0 && observations === 0) return 'nothing learned yet\n';
  const rows = stages.map(({ route, stage, observations, medianSeconds, p99Seconds }) => [
    route,
    stage,
    String(observations),
    `${medianSeconds} s`,
    `${p99Seconds} s`,
  ]);
  return [
    ...(rows.length === 0 ? [] : [table([['ROUTE', 'STAGE', 'OBSERVED', 'MEDIAN', 'P99'], ...rows]), '']),
    `new transfers: one in ${everySeconds} s in a usual wallet, ${observations} observed`,
    '',
  ].join('\n');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
