import { expect, test } from 'vitest';
import { needs, PARTS } from '../support/optional-parts.ts';
import {
  type Expected,
  HEALTHY,
  JOB,
  OVERDUE,
  oldest,
  POLLS,
  play,
  READY,
  RELAY,
  type Series,
  state,
  TIME,
  transfers,
  value,
  WAIT,
} from '../support/played-rules.ts';

const promtool = needs(PARTS.promtool);
const options = { skip: promtool.skip };
const unlessInstalled = promtool.note;

function firing(minutes: number, alerts: Record<string, number>): Expected {
  return {
    expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
    minutes,
    samples: Object.entries(alerts)
      .sort()
      .map(([alert, count]) => ({ labels: `{alertname="${alert}"}`, value: count })),
  };
}

function range(from: number, until: number, step = 1): number[] {
  return Array.from({ length: Math.floor((until - from) / step) + 1 }, (_, index) => from + index * step);
}

function ofProcess(instance: string, series: Series): Series {
  return Object.fromEntries(
    Object.entries(series).map(([name, values]) => [name.replace('a:9464', `${instance}:9464`), values]),
  );
}

const isCounter = (name: string): boolean => /(_total|_count|_bucket)\{/.test(name);

test(
  `a daemon that starts after twenty minutes without one sets off nothing in its first half hour${unlessInstalled}`,
  options,
  async () => {
    // The values of a series from the 21st minute on, when all of it is new to Prometheus.
    const begins = (values: string): string => `_x21 ${values}`;
    const started = Object.fromEntries(Object.keys(HEALTHY).map((name) => [name, begins('0x99')]));
    const cold: Series = {
      ...started,
      [`up{${JOB}}`]: '0x20 1x99',
      [TIME]: begins('1260.4+60x98'),
      [READY]: begins('0 1x98'),
      [RELAY]: begins('0 1x98'),
      [`intentwatch_config_last_reload_successful{${JOB}}`]: begins('1x99'),
      [`intentwatch_redis_reachable{${JOB}}`]: begins('1x99'),
      [`intentwatch_redis_persistent{${JOB}}`]: begins('1x99'),
      [state('ok')]: begins('1x99'),
      // All polls are late once; changes of that time are found and reported in the first minutes.
      [WAIT]: begins('1260 900 30x97'),
      [OVERDUE]: begins('1200 700 0x97'),
      [POLLS]: begins('0 300 600+300x97'),
      [transfers('pending')]: begins('20x99'),
      [transfers('overdue')]: begins('8 3 0x97'),
      [oldest('overdue')]: begins('2000 2060 0x97'),
      [value('overdue')]: begins('800 300 0x97'),
    };
    const during = range(2, 20).map((minute) =>
      firing(minute, { IntentwatchDown: 1, ...(minute >= 5 ? { IntentwatchProcessDown: 1 } : {}) }),
    );
    expect(await play(cold, [...during, ...range(21, 51).map((minute) => firing(minute, {}))])).toBe('');
  },
);

test(
  `a restart, after which all is counted from 0, sets off nothing${unlessInstalled}`,
  options,
  async () => {
    const restarted = Object.fromEntries(
      Object.entries(HEALTHY).flatMap(([name, values]) => {
        if (!isCounter(name)) return [];
        const [, first = '0', step = '0'] = /^(\d+)(?:\+(\d+))?x120$/.exec(values) ?? [];
        return [[name, `${first}+${step}x59 0+${step}x60`]];
      }),
    );
    const series = { ...HEALTHY, ...restarted, [READY]: '1x59 0 1x59', [RELAY]: '1x59 0 1x59' };
    expect(
      await play(
        series,
        range(55, 115).map((minute) => firing(minute, {})),
      ),
    ).toBe('');
  },
);

test(
  `one of two processes stops, and it held the relay: one warning reports it, and none reports undone work${unlessInstalled}`,
  options,
  async () => {
    const gone = Object.fromEntries(
      Object.entries(HEALTHY).map(([name, values]) => [
        name,
        name.startsWith('up{')
          ? '1x59 0x60'
          : `${values.replace(/^(\S+)x120$/, '$1x59')} stale _x60`.replace(
              /^(?!.*x59).*$/,
              '0x59 stale _x60',
            ),
      ]),
    );
    const series = {
      ...HEALTHY,
      ...ofProcess('b', gone),
      [RELAY]: '0x60 1x59',
      [RELAY.replace('a:9464', 'b:9464')]: '1x59 stale _x60',
      [TIME.replace('a:9464', 'b:9464')]: '0.4+60x59 stale _x60',
    };
    const down = { IntentwatchProcessDown: 1 };
    const minutes = range(55, 115);
    expect(
      await play(
        series,
        minutes.map((minute) => firing(minute, minute < 65 ? {} : down)),
      ),
    ).toBe('');
  },
);

/** Two hours in which the upstream gives no answer, from the 20th minute on; 8 routes have transfers under way. */
function upstreamAway(): Series {
  const routes = range(1, 8).map((chain) => `${chain}:10`);
  return {
    ...HEALTHY,
    [`up{${JOB}}`]: '1x240',
    [TIME]: '0.4+60x240',
    [READY]: '1x240',
    [RELAY]: '1x240',
    [state('ok')]: '1x19 0x119 1x100',
    [state('unreachable')]: '0x19 1x119 0x100',
    // Probes continue, and fail.
    [POLLS]: '0+300x19 6000x119 6000+300x100',
    [POLLS.replace('answered', 'failed')]: '0x19 12+12x119 1440x100',
    [WAIT]: '30x19 60+60x119 30x100',
    [OVERDUE]: '0x19 0+60x119 60 0x99',
    // Transfers that may have been filled unseen are reported as overdue, on every route; some time after the outage none is.
    ...Object.fromEntries(
      routes.flatMap((route) => [
        [transfers('pending', route), '10x19 10x10 0x108 0x2 10x98'],
        [transfers('overdue', route), '0x19 0x10 10x108 0x2 0x98'],
      ]),
    ),
    [oldest('overdue')]: '0x29 1200+60x109 0x100',
    [value('overdue')]: '0x29 4000x109 0x100',
    // All transfers filled meanwhile are seen at once, late.
    [`intentwatch_detection_delay_seconds_bucket{${JOB},kind="intent",le="2"}`]:
      '0+10x19 190x119 190x2 200+10x97',
    [`intentwatch_detection_delay_seconds_bucket{${JOB},kind="intent",le="300"}`]:
      '0+10x19 190x119 190x2 200+10x97',
    [`intentwatch_detection_delay_seconds_bucket{${JOB},kind="intent",le="+Inf"}`]:
      '0+10x19 190x119 270x2 280+10x97',
    [`intentwatch_detection_delay_seconds_count{${JOB},kind="intent"}`]: '0+10x19 190x119 270x2 280+10x97',
  };
}

test(
  `an upstream that is away for two hours leads to two alerts, for any number of routes, which end with it${unlessInstalled}`,
  options,
  async () => {
    const away = { IntentwatchUpstreamUnreachable: 1 };
    const late = { ...away, IntentwatchTransfersOverdue: 1 };
    const expected = [
      firing(19, {}),
      ...range(23, 40, 5).map((minute) => firing(minute, away)),
      ...range(50, 135, 5).map((minute) => firing(minute, late)),
      ...range(143, 230, 3).map((minute) => firing(minute, {})),
    ];
    expect(await play(upstreamAway(), expected)).toBe('');
  },
);
