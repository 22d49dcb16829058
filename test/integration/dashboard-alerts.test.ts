import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';

const RULES_FILE = new URL('../../config/prometheus/rules.yml', import.meta.url).pathname;
const SCRAPE_FILE = new URL('../../config/prometheus/scrape.yml', import.meta.url).pathname;

const RULES = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string() })) })),
});
const alerts = RULES.parse(parse(await readFile(RULES_FILE, 'utf8'))).groups.flatMap((group) =>
  group.rules.map((rule) => rule.alert),
);

const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
const options = { skip: !hasPromtool };
const unlessInstalled = hasPromtool ? '' : ' (skipped: promtool is not installed)';

/** Series of Prometheus with one value per minute, in the notation of promtool: start, step, count. */
type Series = Record<string, string>;

const JOB = 'job="intentwatch",instance="a:9464"';
const POLLS = `intentwatch_polls_total{${JOB},surface="status",outcome="answered"}`;
const WAIT = `intentwatch_longest_wait_seconds{${JOB},kind="wallet"}`;
const OVERDUE = `intentwatch_overdue_seconds{${JOB},surface="status"}`;
const FAILING = `intentwatch_subjects_failing{${JOB},surface="status"}`;
const PAUSED = `intentwatch_upstream_paused_seconds_total{${JOB},surface="status"}`;
const DELIVERED = `intentwatch_deliveries_total{${JOB},receiver="backend",outcome="delivered"}`;
const PENDING = `intentwatch_deliveries_pending{${JOB},receiver="backend"}`;
const TIME = `intentwatch_time_seconds{${JOB}}`;
const READY = `intentwatch_ready{${JOB}}`;
const RELOADED = `intentwatch_config_last_reload_successful{${JOB}}`;
const REACHABLE = `intentwatch_redis_reachable{${JOB}}`;
const PERSISTENT = `intentwatch_redis_persistent{${JOB}}`;
const SOURCES = [
  'subjects',
  'queues',
  'deliveries',
  'receivers',
  'surfaces',
  'crashing',
  'routes',
  'learned',
];
const RELAY = `intentwatch_relay_holding{${JOB}}`;

const RELAY_STOPPED = `intentwatch_relay_stopped{${JOB}}`;
const FOREIGN = `intentwatch_foreign_entries_total{${JOB},what="claim"}`;
const SET_ASIDE = `intentwatch_entries_set_aside_total{${JOB}}`;

function state(word: string): string {
  return `intentwatch_upstream_state{${JOB},surface="status",state="${word}"}`;
}

function receiver(word: string): string {
  return `intentwatch_receiver_state{${JOB},receiver="backend",state="${word}"}`;
}

function attempts(outcome: string): string {
  return `intentwatch_delivery_attempts_total{${JOB},receiver="backend",outcome="${outcome}"}`;
}

/** Two hours of a daemon without troubles. */
const HEALTHY: Series = {
  [`up{${JOB}}`]: '1x120',
  [TIME]: '0.4+60x120',
  [READY]: '1x120',
  [RELOADED]: '1x120',
  [REACHABLE]: '1x120',
  [PERSISTENT]: '1x120',
  [state('ok')]: '1x120',
  [state('unreachable')]: '0x120',
  [state('unauthorized')]: '0x120',
  [PAUSED]: '0+1x120',
  [OVERDUE]: '0x60 90x5 0x55',
  [FAILING]: '0x30 2x10 0x80',
  [POLLS]: '0+300x120',
  [WAIT]: '30x120',
  [`intentwatch_subjects_crashing{${JOB}}`]: '0x120',
  [`intentwatch_repairs_total{${JOB},what="poll-missing"}`]: '0x120',
  [RELAY]: '1x120',
  [RELAY_STOPPED]: '0x120',
  [SET_ASIDE]: '0x120',
  [FOREIGN]: '0x120',
  [`intentwatch_deliveries_total{${JOB},receiver="backend",outcome="dead"}`]: '3x120',
  [DELIVERED]: '0+2x120',
  [attempts('delivered')]: '0+2x120',
  [attempts('failed')]: '0+1x120',
  [attempts('rejected')]: '0x120',
  [receiver('ok')]: '1x120',
  [receiver('failing')]: '0 1x10 0x109',
  [receiver('disabled')]: '0x120',
  [PENDING]: '1x120',
  [`intentwatch_events_dropped_total{${JOB},receiver="backend"}`]: '0x120',
  [`intentwatch_scrape_errors_total{${JOB},source="subjects"}`]: '0 0 1 1 1x116',
};

/** For every alert: how a troubled daemon differs from a healthy one, and after how many minutes that is told. */
const TROUBLES: Record<string, { differs: Series; afterMinutes: number }> = {
  IntentwatchDown: { differs: { [`up{${JOB}}`]: '0x120' }, afterMinutes: 2 },
  IntentwatchProcessDown: {
    differs: { 'up{job="intentwatch",instance="b:9464"}': '0x120' },
    afterMinutes: 6,
  },
  IntentwatchRedisUnreachable: { differs: { [REACHABLE]: '0x120' }, afterMinutes: 2 },
  IntentwatchNotReady: { differs: { [READY]: '0x120' }, afterMinutes: 2 },
  IntentwatchConfigReloadFailed: { differs: { [RELOADED]: '1x30 0x90' }, afterMinutes: 33 },
  IntentwatchRedisNotPersistent: { differs: { [PERSISTENT]: '0x120' }, afterMinutes: 2 },
  IntentwatchUpstreamUnreachable: { differs: { [state('unreachable')]: '1x120' }, afterMinutes: 3 },
  IntentwatchUpstreamUnauthorized: { differs: { [state('unauthorized')]: '1x120' }, afterMinutes: 2 },
  IntentwatchUpstreamThrottled: {
    differs: { [PAUSED]: '0+30x120' },
    afterMinutes: 25,
  },
  IntentwatchPollLag: { differs: { [OVERDUE]: '90x120' }, afterMinutes: 11 },
  IntentwatchNothingPolled: {
    differs: { [POLLS]: '0+300x20 6000x100', [WAIT]: '30x20 30+60x100', [PAUSED]: '0x120' },
    afterMinutes: 38,
  },
  IntentwatchSubjectsFailing: { differs: { [FAILING]: '2x120' }, afterMinutes: 31 },
  IntentwatchPollsCrashing: {
    differs: { [`intentwatch_subjects_crashing{${JOB}}`]: '2x120' },
    afterMinutes: 2,
  },
  IntentwatchRepairs: {
    differs: { [`intentwatch_repairs_total{${JOB},what="poll-missing"}`]: '0x10 1x110' },
    afterMinutes: 12,
  },
  IntentwatchRelayAbsent: { differs: { [RELAY]: '0x120' }, afterMinutes: 2 },
  IntentwatchRelayStopped: { differs: { [RELAY_STOPPED]: '1x120' }, afterMinutes: 2 },
  IntentwatchEntriesSetAside: { differs: { [SET_ASIDE]: '0x10 1x110' }, afterMinutes: 12 },
  IntentwatchForeignEntries: { differs: { [FOREIGN]: '0x10 1x110' }, afterMinutes: 12 },
  IntentwatchDeadLetters: {
    differs: {
      [`intentwatch_deliveries_total{${JOB},receiver="backend",outcome="dead"}`]: '0x10 1x110',
    },
    afterMinutes: 12,
  },
  IntentwatchDeliveriesFailing: { differs: { [attempts('failed')]: '0+3x120' }, afterMinutes: 15 },
  IntentwatchReceiverFailing: { differs: { [receiver('failing')]: '1x120' }, afterMinutes: 16 },
  IntentwatchReceiverDisabled: { differs: { [receiver('disabled')]: '1x120' }, afterMinutes: 2 },
  IntentwatchReceiverStuck: { differs: { [DELIVERED]: '7x120' }, afterMinutes: 61 },
  IntentwatchEventsDropped: {
    differs: { [`intentwatch_events_dropped_total{${JOB},receiver="backend"}`]: '0x10 4x110' },
    afterMinutes: 12,
  },
  IntentwatchGaugesMissing: {
    differs: { [`intentwatch_scrape_errors_total{${JOB},source="subjects"}`]: '0+4x120' },
    afterMinutes: 10,
  },
  IntentwatchClockOff: { differs: { [TIME]: '3.5+60x120' }, afterMinutes: 6 },
};

/** Lets promtool play series against the rules; returns what it says where an expression is not as expected. */
async function play(
  series: Series,
  expected: { expr: string; minutes: number; samples: { labels: string; value: number }[] }[],
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
  };
  await writeFile(file, stringify({ rule_files: [RULES_FILE], evaluation_interval: '1m', tests: [tests] }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  await rm(folder, { recursive: true });
  return status === 0 ? '' : `${stdout}${stderr}`;
}

test('every alert has a trouble here that sets it off', () => {
  expect(Object.keys(TROUBLES)).toEqual(alerts);
});

test(`a healthy daemon sets off no alert in two hours${unlessInstalled}`, options, async () => {
  const quiet = [1, 5, 15, 45, 75, 119].map((minutes) => ({
    expr: 'ALERTS{alertstate="firing"}',
    minutes,
    samples: [],
  }));
  expect(await play(HEALTHY, quiet)).toBe('');
});

test(`a daemon that has nothing to poll sets off no alert${unlessInstalled}`, options, async () => {
  const idle = { ...HEALTHY, [POLLS]: '6000x120', [WAIT]: '0x120', [PAUSED]: '0x120' };
  expect(await play(idle, [{ expr: 'ALERTS{alertstate="firing"}', minutes: 60, samples: [] }])).toBe('');
});

/** A Redis that is dead from the 20th minute on, for so many; what is read from it is missing, what is counted stands still. */
function outage(minutes: number): Series {
  const missing = `stale _x${minutes - 1}`;
  const after = 100 - minutes;
  const gauge = (usual: string, dead: string): string => `${usual}x19 ${dead} ${usual}x${after}`;
  const counter = (step: number): string =>
    `0+${step}x19 ${step * 19}x${minutes - 1} ${step * 20}+${step}x${after}`;
  const polled = counter(300);
  return {
    ...HEALTHY,
    [READY]: gauge('1', `0x${minutes - 1}`),
    [REACHABLE]: gauge('1', `0x${minutes - 1}`),
    [state('ok')]: gauge('1', missing),
    [state('unreachable')]: gauge('0', missing),
    [state('unauthorized')]: gauge('0', missing),
    [WAIT]: gauge('30', missing),
    [PENDING]: gauge('1', missing),
    [receiver('ok')]: gauge('1', missing),
    [receiver('failing')]: gauge('0', missing),
    [receiver('disabled')]: gauge('0', missing),
    [POLLS]: polled,
    [DELIVERED]: counter(2),
    [attempts('delivered')]: counter(2),
    [attempts('failed')]: counter(1),
    // In the first minute after it, all that came due meanwhile is late.
    [OVERDUE]: `0x19 ${missing} ${minutes * 60} 0x${after - 1}`,
    // Four scrapes a minute.
    ...Object.fromEntries(
      SOURCES.map((source) => [
        `intentwatch_scrape_errors_total{${JOB},source="${source}"}`,
        `0x19 4+4x${minutes - 1} ${4 * minutes}x${after}`,
      ]),
    ),
  };
}

const REDIS_ALERTS = ['IntentwatchNotReady', 'IntentwatchRedisUnreachable'];

test.each([1, 3, 6, 30])(
  `a Redis that is dead for %i minutes sets off two critical alerts within 2 minutes, which end with it${unlessInstalled}`,
  options,
  async (minutes) => {
    const firing = (minute: number, alertnames: readonly string[]) => ({
      expr: 'count by (alertname, severity) (ALERTS{alertstate="firing"})',
      minutes: minute,
      samples: alertnames.map((name) => ({
        labels: `{alertname="${name}", severity="critical"}`,
        value: 1,
      })),
    });
    const during = Array.from({ length: Math.max(0, minutes - 2) }, (_, index) =>
      firing(22 + index, REDIS_ALERTS),
    );
    const after = Array.from({ length: 45 }, (_, index) => firing(20 + minutes + 1 + index, []));
    expect(await play(outage(minutes), [firing(20, []), ...during, ...after])).toBe('');
  },
);

test(
  `what is late while the upstream is away or paused is no fault of the budget, nor of ours${unlessInstalled}`,
  options,
  async () => {
    const none = (alert: string, minutes: number) => ({
      expr: `ALERTS{alertstate="firing", alertname="${alert}"}`,
      minutes,
      samples: [],
    });
    const away = {
      ...HEALTHY,
      [OVERDUE]: '600x120',
      [state('ok')]: '0x120',
      [state('unreachable')]: '1x120',
    };
    expect(await play(away, [none('IntentwatchPollLag', 60)])).toBe('');
    const paused = {
      [POLLS]: '0+300x20 6000x100',
      [WAIT]: '30x20 30+60x100',
      [PAUSED]: '0x20 900x15 1800x85',
    };
    expect(await play({ ...HEALTHY, ...paused }, [none('IntentwatchNothingPolled', 48)])).toBe('');
  },
);

test.each(Object.entries(TROUBLES))(
  `%s is set off by its trouble, once${unlessInstalled}`,
  options,
  async (alert, { differs, afterMinutes }) => {
    const firing = {
      expr: `count by (alertname) (ALERTS{alertstate="firing", alertname="${alert}"})`,
      minutes: afterMinutes,
      samples: [{ labels: `{alertname="${alert}"}`, value: 1 }],
    };
    expect(await play({ ...HEALTHY, ...differs }, [firing])).toBe('');
  },
);

test(`the scrape config and its rules are valid${unlessInstalled}`, options, () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'config', SCRAPE_FILE], {
    encoding: 'utf8',
  });
  expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, '']);
});
