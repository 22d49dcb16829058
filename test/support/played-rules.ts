import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';

const RULES_FILE = new URL('../../config/prometheus/rules.yml', import.meta.url).pathname;

const ALERT = z.object({
  alert: z.string(),
  expr: z.string(),
  annotations: z.object({ summary: z.string(), description: z.string(), runbook_url: z.string() }),
});

/** The part of a file of rules that tests read. */
export const RULES = z.object({
  groups: z.array(z.object({ rules: z.array(z.union([ALERT, z.object({ record: z.string() })])) })),
});

/** Every shipped alert, in the order of the file. */
export const ALERTS = RULES.parse(parse(await readFile(RULES_FILE, 'utf8'))).groups.flatMap(({ rules }) =>
  rules.flatMap((rule) => ('alert' in rule ? rule : [])),
);

/** Series of Prometheus with one value per minute, in the notation of promtool: start, step, count. */
export type Series = Record<string, string>;

export const JOB = 'job="intentwatch",instance="a:9464"';
export const POLLS = `intentwatch_polls_total{${JOB},endpoint_group="status",outcome="answered"}`;
export const WAIT = `intentwatch_longest_wait_seconds{${JOB},kind="wallet"}`;
export const OVERDUE = `intentwatch_poll_overdue_seconds{${JOB},endpoint_group="status"}`;
export const FAILING = `intentwatch_subjects_failing{${JOB},endpoint_group="status"}`;
export const PAUSED = `intentwatch_upstream_paused_seconds_total{${JOB},endpoint_group="status"}`;
export const DELIVERED = `intentwatch_deliveries_total{${JOB},receiver="backend",outcome="delivered"}`;
export const PENDING = `intentwatch_deliveries_pending{${JOB},receiver="backend"}`;
export const TIME = `intentwatch_clock_timestamp_seconds{${JOB}}`;
export const READY = `intentwatch_ready{${JOB}}`;
export const RELOADED = `intentwatch_config_last_reload_successful{${JOB}}`;
export const LARGE_REMOVAL = `intentwatch_config_large_removal{${JOB},what="wallets"}`;
export const REACHABLE = `intentwatch_redis_reachable{${JOB}}`;
export const CLOCKS_HELD = `intentwatch_clocks_held{${JOB}}`;
export const EPOCH = `intentwatch_data_epoch{${JOB}}`;
export const PERSISTENT = `intentwatch_redis_persistent{${JOB}}`;
export const SOURCES = [
  'subjects',
  'queues',
  'deliveries',
  'receivers',
  'endpointGroups',
  'crashing',
  'routes',
  'learned',
];
export const RELAY = `intentwatch_relay_holding{${JOB}}`;

export const DISPUTED = `intentwatch_proofs_total{${JOB},chain="8453",outcome="disputed"}`;
export const WAITING = `intentwatch_proof_oldest_waiting_seconds{${JOB},chain="8453"}`;
export const GAPS = `intentwatch_proof_log_gaps_total{${JOB}}`;
export const BOOKS_FAILURES = `intentwatch_books_failures_total{${JOB}}`;
export const BOOKS_BREAKS = `intentwatch_books_breaks_total{${JOB},kind="lost"}`;
export const UNPROVEN = `intentwatch_proofs_total{${JOB},chain="8453",outcome="unproven"}`;
export const UNDELIVERED = `intentwatch_oldest_undelivered_event_seconds{${JOB},receiver="backend"}`;
const DELAYS = `intentwatch_detection_delay_seconds_count{${JOB},kind="intent"}`;
const LAGS = `intentwatch_upstream_lag_seconds_count{${JOB},route="8453:10"}`;

export const RELAY_STOPPED = `intentwatch_relay_stopped{${JOB}}`;
export const DIFFERING = `intentwatch_status_comparisons_total{${JOB},result="differs"}`;
export const FOREIGN = `intentwatch_foreign_entries_total{${JOB},what="claim"}`;
export const QUARANTINED = `intentwatch_entries_quarantined_total{${JOB}}`;

export function state(word: string): string {
  return `intentwatch_upstream_state{${JOB},endpoint_group="status",state="${word}"}`;
}

export function receiver(word: string): string {
  return `intentwatch_receiver_state{${JOB},receiver="backend",state="${word}"}`;
}

export function transfers(word: string, route = '8453:10'): string {
  return `intentwatch_transfers_open{${JOB},state="${word}",route="${route}"}`;
}

export function value(word: string): string {
  return `intentwatch_transfers_open_value_tokens{${JOB},state="${word}",token="USDC"}`;
}

export function oldest(word: string): string {
  return `intentwatch_transfer_oldest_seconds{${JOB},state="${word}"}`;
}

export function delays(le: string): string {
  return `intentwatch_detection_delay_seconds_bucket{${JOB},kind="intent",le="${le}"}`;
}

export function lags(le: string): string {
  return `intentwatch_upstream_lag_seconds_bucket{${JOB},route="8453:10",le="${le}"}`;
}

export function calls(outcome: string): string {
  return `intentwatch_rpc_calls_total{${JOB},chain="8453",endpoint="own",outcome="${outcome}"}`;
}

export function booksMails(outcome: string): string {
  return `intentwatch_books_mails_total{${JOB},outcome="${outcome}"}`;
}

export function attempts(outcome: string): string {
  return `intentwatch_delivery_attempts_total{${JOB},receiver="backend",outcome="${outcome}"}`;
}

/** Two hours of a daemon without troubles. */
export const HEALTHY: Series = {
  [`up{${JOB}}`]: '1x120',
  // A transfer that is briefly refundable, and some that are overdue for less than a quarter of an hour.
  [transfers('pending')]: '20x120',
  [transfers('overdue')]: '0x40 4x10 0x70',
  [transfers('expired')]: '0x120',
  [transfers('failed')]: '0x120',
  [transfers('refundable')]: '0x30 1 0x89',
  [value('overdue')]: '0x40 400x10 0x70',
  [value('refundable')]: '0x30 100 0x89',
  [oldest('overdue')]: '0x40 700x10 0x70',
  [DISPUTED]: '3x120',
  [UNPROVEN]: '0x120',
  [UNDELIVERED]: '0x60 3500x5 5x55',
  [`intentwatch_receiver_info{${JOB},receiver="backend",type="webhook"}`]: '1x120',
  [`intentwatch_receiver_info{${JOB},receiver="oncall",type="email"}`]: '1x120',
  // Mail that rests in quiet hours.
  [`intentwatch_oldest_undelivered_event_seconds{${JOB},receiver="oncall"}`]: '36000x120',
  [delays('2')]: '0+10x120',
  [delays('300')]: '0+10x120',
  [delays('+Inf')]: '0+10x120',
  [DELAYS]: '0+10x120',
  [lags('5')]: '0+9x120',
  [lags('3600')]: '0+10x120',
  [lags('+Inf')]: '0+10x120',
  [LAGS]: '0+10x120',
  [BOOKS_FAILURES]: '0x120',
  [BOOKS_BREAKS]: '0x120',
  [booksMails('failed')]: '0x10 1x110',
  [booksMails('dead')]: '0x120',
  [`intentwatch_internal_errors_total{${JOB},part="record"}`]: '0x10 1x110',
  [`intentwatch_books_read_timestamp_seconds{${JOB}}`]: '0+60x20 1200x100',
  [WAITING]: '7200x120',
  [GAPS]: '0x120',
  [calls('ok')]: '0+10x120',
  [calls('failed')]: '0+4x120',
  [TIME]: '0.4+60x120',
  [READY]: '1x120',
  [RELOADED]: '1x120',
  [LARGE_REMOVAL]: '0x120',
  [REACHABLE]: '1x120',
  [PERSISTENT]: '1x120',
  [EPOCH]: '1x120',
  [state('ok')]: '1x120',
  [state('unreachable')]: '0x120',
  [state('unauthorized')]: '0x120',
  [PAUSED]: '0+1x120',
  [OVERDUE]: '0x60 90x5 0x55',
  [FAILING]: '0x30 2x10 0x80',
  [POLLS]: '0+300x120',
  [WAIT]: '30x120',
  [`intentwatch_wallets_never_swept{${JOB},state="broken"}`]: '0x120',
  [`intentwatch_subjects_crashing{${JOB}}`]: '0x120',
  [`intentwatch_repairs_total{${JOB},what="poll-missing"}`]: '0x120',
  [RELAY]: '1x120',
  [RELAY_STOPPED]: '0x120',
  [QUARANTINED]: '0x120',
  [FOREIGN]: '0x120',
  [DIFFERING]: '2x120',
  [`intentwatch_deliveries_total{${JOB},receiver="backend",outcome="dead"}`]: '3x120',
  [DELIVERED]: '0+2x120',
  [attempts('delivered')]: '0+2x120',
  [attempts('failed')]: '0+1x120',
  [attempts('rejected')]: '0x120',
  [`intentwatch_mail_recipients_refused_total{${JOB},receiver="backend"}`]: '0x120',
  [receiver('ok')]: '1x120',
  [receiver('failing')]: '0 1x10 0x109',
  [receiver('disabled')]: '0x120',
  [PENDING]: '1x120',
  [`intentwatch_events_dropped_total{${JOB},receiver="backend"}`]: '0x120',
  [`intentwatch_scrape_errors_total{${JOB},source="subjects"}`]: '0 0 1 1 1x116',
};

export type Expected = { expr: string; minutes: number; samples: { labels: string; value: number }[] };

/** An alert that must fire at a time, with all its texts. */
export type Spoken = {
  alert: string;
  minutes: number;
  labels: Record<string, string>;
  annotations: Record<string, string>;
};

/** Plays series against the rules in promtool; returns its output where a value is not as expected. */
export async function play(
  series: Series,
  expected: readonly Expected[],
  spoken: readonly Spoken[] = [],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-rules-'));
  const file = join(folder, 'test.yml');
  const tests = {
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: expected.map(({ expr, minutes, samples }) => ({
      expr,
      eval_time: `${minutes}m`,
      exp_samples: samples,
    })),
    alert_rule_test: spoken.map(({ alert, minutes, labels, annotations }) => ({
      alertname: alert,
      eval_time: `${minutes}m`,
      exp_alerts: [{ exp_labels: labels, exp_annotations: annotations }],
    })),
  };
  await writeFile(file, stringify({ rule_files: [RULES_FILE], evaluation_interval: '1m', tests: [tests] }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  await rm(folder, { recursive: true, maxRetries: 5 });
  return status === 0 ? '' : `${stdout}${stderr}`;
}
