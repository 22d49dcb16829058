import { expect, test } from 'vitest';
import { playTrouble, TROUBLES } from '../support/alert-troubles.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import {
  attempts,
  DELIVERED,
  type Expected,
  HEALTHY,
  JOB,
  OVERDUE,
  PAUSED,
  PENDING,
  POLLS,
  play,
  REACHABLE,
  READY,
  receiver,
  type Series,
  SOURCES,
  state,
  WAIT,
} from '../support/played-rules.ts';

const promtool = needs(PARTS.promtool);

const options = { skip: promtool.skip };
const unlessInstalled = promtool.note;

test(
  `the first scrape of a process reports its earlier findings, for an hour${unlessInstalled}`,
  options,
  async () => {
    const fresh = 'job="intentwatch",instance="fresh:9464"';
    const found = {
      IntentwatchDisputed: 'proofs_total{chain="8453",outcome="disputed"}',
      IntentwatchUnproven: 'proofs_total{chain="8453",outcome="unproven"}',
      IntentwatchRepairs: 'repairs_total{what="poll-missing"}',
      IntentwatchEntriesQuarantined: 'entries_quarantined_total{}',
      IntentwatchForeignEntries: 'foreign_entries_total{what="snapshot"}',
      IntentwatchDeadLetters: 'deliveries_total{receiver="backend",outcome="dead"}',
      IntentwatchRecipientsRefused: 'mail_recipients_refused_total{receiver="backend"}',
      IntentwatchEventsDropped: 'events_dropped_total{receiver="backend"}',
      IntentwatchProofLogGap: 'proof_log_gaps_total{}',
      IntentwatchBooksMailFailing: 'books_mails_total{outcome="dead"}',
      IntentwatchBooksBroken: 'books_breaks_total{kind="lost"}',
    };
    const series = Object.values(found).map((name) => `intentwatch_${name.replace('{', `{${fresh},`)}`);
    const started = {
      ...HEALTHY,
      [`process_start_time_seconds{${fresh}}`]: '_x10 570x110',
      ...Object.fromEntries(series.map((name) => [name.replace(',}', '}'), '_x10 1x110'])),
    };
    const reported = (minutes: number, names: readonly string[]): Expected => ({
      expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
      minutes,
      samples: names.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
    });
    expect(await play(started, [reported(11, Object.keys(found)), reported(75, [])])).toBe('');
  },
);

test(`a daemon that has nothing to poll sets off no alert${unlessInstalled}`, options, async () => {
  const idle = { ...HEALTHY, [POLLS]: '6000x120', [WAIT]: '0x120', [PAUSED]: '0x120' };
  expect(await play(idle, [{ expr: 'ALERTS{alertstate="firing"}', minutes: 60, samples: [] }])).toBe('');
});

/** A Redis that is dead from the 20th minute on, for some minutes; its gauges are missing, its counters stop. */
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
    // In the first minute after it, all polls that became due meanwhile are late.
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
  `delays while the upstream is away or paused are no fault of the budget, nor of ours${unlessInstalled}`,
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

test.each(Object.keys(TROUBLES))(
  `%s is set off by its trouble, once${unlessInstalled}`,
  options,
  async (alert) => {
    expect(await playTrouble(alert)).toBe('');
  },
);
