import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { installed } from '../support/installed.ts';
import {
  ALERTS,
  attempts,
  BOOKS_BREAKS,
  BOOKS_FAILURES,
  calls,
  DELIVERED,
  DISPUTED,
  delays,
  type Expected,
  FAILING,
  FOREIGN,
  GAPS,
  HEALTHY,
  JOB,
  lags,
  OVERDUE,
  oldest,
  PAUSED,
  PENDING,
  PERSISTENT,
  POLLS,
  play,
  REACHABLE,
  READY,
  RELAY,
  RELAY_STOPPED,
  RELOADED,
  receiver,
  SET_ASIDE,
  type Series,
  SOURCES,
  state,
  TIME,
  transfers,
  UNDELIVERED,
  UNPROVEN,
  WAIT,
  WAITING,
} from '../support/played-rules.ts';

const RUNBOOK_FILE = new URL('../../docs/operations.md', import.meta.url).pathname;
const LOGS_FILE = new URL('../../docs/logs.md', import.meta.url).pathname;
const SCRAPE_FILE = new URL('../../config/prometheus/scrape.yml', import.meta.url).pathname;

const promtool = installed('promtool');

const options = { skip: promtool.skip };
const unlessInstalled = promtool.note;

/** For every alert: how a troubled daemon differs from a healthy one, and after how many minutes that is told. */
const TROUBLES: Record<string, { differs: Series; afterMinutes: number }> = {
  IntentwatchMoneyStuck: { differs: { [transfers('refundable')]: '0x30 1x90' }, afterMinutes: 34 },
  IntentwatchOverdueRising: { differs: { [transfers('overdue')]: '1x60 8x60' }, afterMinutes: 68 },
  IntentwatchTransfersOverdue: { differs: { [oldest('overdue')]: '0x20 700+60x100' }, afterMinutes: 37 },
  IntentwatchDisputed: { differs: { [DISPUTED]: '3x30 4x90' }, afterMinutes: 32 },
  IntentwatchUnproven: { differs: { [UNPROVEN]: '0x30 1x90' }, afterMinutes: 32 },
  IntentwatchEventsUndelivered: { differs: { [UNDELIVERED]: '0+60x120' }, afterMinutes: 67 },
  IntentwatchDetectionSlow: { differs: { [delays('2')]: '0+9x120' }, afterMinutes: 27 },
  IntentwatchUpstreamLate: { differs: { [lags('5')]: '0+1x120' }, afterMinutes: 42 },
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
  IntentwatchProofsWaiting: { differs: { [WAITING]: '90000x120' }, afterMinutes: 16 },
  IntentwatchProofLogGap: { differs: { [GAPS]: '0x10 1x110' }, afterMinutes: 12 },
  IntentwatchBooksFailing: { differs: { [BOOKS_FAILURES]: '0+1x120' }, afterMinutes: 45 },
  IntentwatchBooksBroken: { differs: { [BOOKS_BREAKS]: '0x10 1x110' }, afterMinutes: 12 },
  IntentwatchRpcFailing: { differs: { [calls('failed')]: '0+20x120' }, afterMinutes: 20 },
};

test('every alert has a trouble here that sets it off', () => {
  expect(Object.keys(TROUBLES)).toEqual(ALERTS.map(({ alert }) => alert));
});

test('counts of what happened are told whole: Prometheus makes 2.195 of 2', () => {
  const told = ALERTS.filter(({ expr }) => /increase\(\S+\[1h\]\) > 0$/m.test(expr));
  expect(told.map(({ alert }) => alert)).toEqual(
    expect.arrayContaining(['IntentwatchDisputed', 'IntentwatchUnproven', 'IntentwatchDeadLetters']),
  );
  for (const { alert, annotations } of told) {
    expect([alert, annotations.description]).toEqual([
      alert,
      expect.not.stringContaining('$value | humanize'),
    ]);
  }
});

test('every log line that an alert names is a log line', async () => {
  const listed = await readFile(LOGS_FILE, 'utf8');
  const named = ALERTS.flatMap(({ annotations }) => {
    const [, lines = ''] = /log lines? ((?:[a-z]+\.[a-z_]+)?)/.exec(annotations.description) ?? [];
    return lines === '' ? [] : [lines];
  });
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((line) => !listed.includes(`\`${line}\``))).toEqual([]);
});

test('every alert has a summary that is always the same, and its place in the runbook', async () => {
  const runbook = await readFile(RUNBOOK_FILE, 'utf8');
  for (const { alert, annotations } of ALERTS) {
    expect([alert, annotations.summary]).toEqual([alert, expect.not.stringContaining('{{')]);
    expect(annotations.runbook_url).toBe(`docs/operations.md#${alert.toLowerCase()}`);
    expect([alert, runbook.includes(`\n### ${alert}\n`)]).toEqual([alert, true]);
  }
});

test(`a healthy daemon sets off no alert in two hours${unlessInstalled}`, options, async () => {
  const quiet = [1, 5, 15, 45, 75, 119].map((minutes) => ({
    expr: 'ALERTS{alertstate="firing"}',
    minutes,
    samples: [],
  }));
  expect(await play(HEALTHY, quiet)).toBe('');
});

test(
  `what a process has found before it is first scraped is told, for an hour${unlessInstalled}`,
  options,
  async () => {
    const fresh = 'job="intentwatch",instance="fresh:9464"';
    const found = {
      IntentwatchDisputed: 'proofs_total{chain="8453",outcome="disputed"}',
      IntentwatchUnproven: 'proofs_total{chain="8453",outcome="unproven"}',
      IntentwatchRepairs: 'repairs_total{what="poll-missing"}',
      IntentwatchEntriesSetAside: 'entries_set_aside_total{}',
      IntentwatchForeignEntries: 'foreign_entries_total{what="snapshot"}',
      IntentwatchDeadLetters: 'deliveries_total{receiver="backend",outcome="dead"}',
      IntentwatchEventsDropped: 'events_dropped_total{receiver="backend"}',
      IntentwatchProofLogGap: 'proof_log_gaps_total{}',
      IntentwatchBooksBroken: 'books_breaks_total{kind="lost"}',
    };
    const series = Object.values(found).map((name) => `intentwatch_${name.replace('{', `{${fresh},`)}`);
    const started = {
      ...HEALTHY,
      [`process_start_time_seconds{${fresh}}`]: '_x10 570x110',
      ...Object.fromEntries(series.map((name) => [name.replace(',}', '}'), '_x10 1x110'])),
    };
    const told = (minutes: number, names: readonly string[]): Expected => ({
      expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
      minutes,
      samples: names.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
    });
    expect(await play(started, [told(11, Object.keys(found)), told(75, [])])).toBe('');
  },
);

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
