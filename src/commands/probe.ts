import { writeFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { EXIT } from '../exit.ts';
import { type ProbeReport, probe } from '../operations/probe/probe-report.ts';
import { MOST_REQUESTS, type ProbeInput } from '../operations/probe/probe-run.ts';
import { HealthStore } from '../store/health.ts';
import { RelayLease } from '../store/lease.ts';
import { PlanStore } from '../store/plan.ts';
import { type QuoteRequest, quoteRequestSchema } from '../upstream/wire/quote.ts';
import { quoteDomainOf, sourceOf, withConnection } from './connection.ts';
import { print, remark } from './daemon.ts';
import { withRedisOf } from './deliveries-of.ts';
import { screenOf, table } from './table.ts';
import { readQuoteFile } from './verify-quote.ts';

type ProbeOptions = {
  config?: string;
  baseUrl?: string;
  apiKey?: string;
  intent?: string[];
  wallet?: string[];
  quote?: string;
  quoteDomain?: string[];
  quotesUrl?: string;
  out?: string;
  json?: true;
};

type BudgetSlot = ProbeInput['slot'];

/** Most subjects of a kind: each costs up to six requests. */
const MOST_SUBJECTS = 3;

const LOCAL_EVERY_MS = 1_000;

/** Time between requests while the endpoint group is down: the daemon probes an upstream that is unreachable as often. */
const DOWN_EVERY_MS = 5_000;

/** `probe`: reports how well this version understands the answers of an upstream. */
export function probeCommand(): Command {
  const command = new Command('probe')
    .description(
      `Report how well the answers of the upstream are understood, without its names and values. Reads only, with at most ${MOST_REQUESTS} requests in 5 minutes.`,
    )
    .option('--wallet <address...>', 'read pages of these wallets (default: the first of the config)')
    .option('--intent <hash...>', 'read these intents (default: the first of the config)')
    .option('--quote <file>', 'also request this price, the body of POST /v1/quotes as JSON. Funds nothing.')
    .option(
      '--quote-domain <name...>',
      'EIP-712 names that are tried on the signature of the price, /2 behind one for version 2',
    )
    .option(
      '--quotes-url <url>',
      'where the open quoting service is (default: upstream.quotesUrl of the config)',
    )
    .option('--out <file>', 'also write the report to a file, as JSON')
    .option('--json', 'print JSON');
  return withConnection(command).action(runProbe);
}

async function runProbe(options: ProbeOptions): Promise<void> {
  const { intent = [], wallet = [], quoteDomain = [], quotesUrl, quote, out } = options;
  for (const [flag, given] of Object.entries({ '--intent': intent, '--wallet': wallet })) {
    if (given.length > MOST_SUBJECTS) {
      throw new Error(`found ${given.length} values of ${flag}, expected at most ${MOST_SUBJECTS}`);
    }
  }
  const domains = quoteDomain.map(quoteDomainOf);
  const { baseUrl, apiKey, config: file } = options;
  const located = {
    ...(baseUrl ? { baseUrl } : {}),
    ...(apiKey ? { apiKey } : {}),
    ...(file ? { config: file } : {}),
  };
  const { upstream, config } = await sourceOf(located, process.env);
  const request = quote === undefined ? null : await quoteRequestOf(quote);
  if (request !== null) remark('requesting a price at the quotes endpoints: nothing is signed or funded');
  const subjects = config?.subscriptions ?? [];
  const firstOf = <T>(given: readonly T[], own: readonly T[]): T[] =>
    given.length > 0 ? [...given] : own.slice(0, 1);
  const input = {
    upstream: quotesUrl === undefined ? upstream : { ...upstream, quotesUrl },
    intents: firstOf(
      intent.map((hash) => hash.replace(/^intent:/, '')),
      subjects.flatMap(({ intents }) => intents),
    ),
    wallets: firstOf(
      wallet,
      subjects.flatMap(({ wallets }) => wallets),
    ),
    jobs: subjects.flatMap(({ gaslessJobs }) =>
      gaslessJobs.flatMap(({ id, endpoint }) => (endpoint === 'gateway' ? [id] : [])),
    ),
    vaults: subjects.flatMap(({ vaults }) => vaults),
    quote: request,
    domains,
  };
  const report = await withSlots(config, (slot) => probe({ ...input, slot }));
  print(options, { raw: report, text: () => render(report) });
  if (out !== undefined) await writeFile(out, `${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = exitOf(report);
}

async function quoteRequestOf(file: string): Promise<QuoteRequest> {
  const parsed = quoteRequestSchema.safeParse(await readQuoteFile(file));
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'request'}: ${message}`);
  throw new Error(`--quote: expected a request of POST /v1/quotes; ${faults.join('; ')}`);
}

/** 78 where the key is refused or missing, 75 where nothing is answered. */
function exitOf({ key, endpoints }: ProbeReport): number {
  if (key === 'refused' || key === 'needed') return EXIT.badConfig;
  const isAnswered = endpoints.some(({ requests }) =>
    requests.some(({ answered }) => answered.startsWith('HTTP 2')),
  );
  return isAnswered ? EXIT.done : EXIT.tryAgain;
}

/** Runs a task with slots of the running daemon's budget, else with one request a second. */
async function withSlots<T>(config: Config | null, use: (slot: BudgetSlot) => Promise<T>): Promise<T> {
  const own = ownSlots();
  let isConnected = false;
  try {
    if (config === null) return await use(own);
    return await withRedisOf(config, async (redis, keys) => {
      isConnected = true;
      const shared = sharedSlots({ plan: new PlanStore(redis, keys), health: new HealthStore(redis, keys) });
      const isRunning = await new RelayLease(redis, keys).isHeld();
      return use(async (group, signal) => {
        const hasBudget = (await redis.hexists(keys.plan(group), 'budget')) === 1;
        await (isRunning && hasBudget ? shared : own)(group, signal);
      });
    });
  } catch (error) {
    if (isConnected || config === null) throw error;
    remark('no running daemon was found: one request a second');
    return use(own);
  }
}

function ownSlots(): BudgetSlot {
  let nextMs = 0;
  return async (_group, signal) => {
    const nowMs = performance.now();
    const atMs = Math.max(nowMs, nextMs);
    nextMs = atMs + LOCAL_EVERY_MS;
    if (atMs > nowMs) await wait(atMs - nowMs, undefined, { signal });
  };
}

function sharedSlots({ plan, health }: { plan: PlanStore; health: HealthStore }): BudgetSlot {
  return async (group, signal) => {
    for (;;) {
      const inMs = await plan.spareSlot(group);
      const pauseMs = inMs === null ? await health.pauseMs(group) : 0;
      await wait(pauseMs > 0 ? pauseMs : (inMs ?? DOWN_EVERY_MS), undefined, { signal });
      if (pauseMs === 0) return;
    }
  };
}

function render({ requests, omitted, endpoints, words, assumptions, settings }: ProbeReport): string {
  const screen = screenOf();
  const sections = [
    table(
      [
        ['ENDPOINT', 'REQUEST', 'KEY', 'ANSWERED', 'TIME'],
        ...endpoints.flatMap(({ endpoint, requests: sent }) =>
          sent.map(({ purpose, key, answered, durationMs }) => [
            endpoint,
            purpose,
            key,
            answered,
            `${durationMs} ms`,
          ]),
        ),
      ],
      screen,
    ),
    ...endpoints.map(renderMembers),
    `statuses: ${listed(words.status)}; at the deposit gateway: ${listed(words.gateway)}`,
    table(
      [
        ['ASSUMPTION', 'VERDICT', 'EVIDENCE'],
        ...assumptions.map(({ id, verdict, evidence }) => [id, verdict, evidence]),
      ],
      screen,
    ),
    settings.length === 0
      ? 'no setting is proposed'
      : table(
          [['SETTING', 'PROPOSAL'], ...settings.map(({ setting, proposal }) => [setting, proposal])],
          screen,
        ),
    `${requests} requests${omitted === 0 ? '' : `, ${omitted} more were not sent`}`,
  ];
  return sections.filter((section) => section !== '').join('\n\n');
}

function renderMembers({ endpoint, read, unknown, unreadable }: ProbeReport['endpoints'][number]): string {
  if (read.length + unknown.length + unreadable.length === 0) return '';
  return [
    endpoint,
    `  read: ${listed(read)}`,
    ...unknown.map(({ member, types }) => `  unknown: ${member} (${types.join(', ')})`),
    ...unreadable.map(({ member, reasons }) => `  unreadable: ${member} (${reasons.join('; ')})`),
  ].join('\n');
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}
