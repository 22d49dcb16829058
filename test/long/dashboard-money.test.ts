import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { needs, PARTS } from '../support/optional-parts.ts';
import {
  ALERTS,
  type Expected,
  HEALTHY,
  play,
  RULES,
  receiver,
  type Spoken,
  transfers,
  UNDELIVERED,
  value,
} from '../support/played-rules.ts';

const MIXIN_FILE = new URL('../../config/mixin/mixin.libsonnet', import.meta.url).pathname;

const promtool = needs(PARTS.promtool);
const jsonnet = needs(PARTS.jsonnet, PARTS.promtool);
const options = { skip: promtool.skip };
const unlessInstalled = promtool.note;

test(
  `money that is stuck is reported with its value by token, once, however it moves on${unlessInstalled}`,
  options,
  async () => {
    const moving = {
      ...HEALTHY,
      [transfers('expired')]: '0x30 2x20 1x70',
      [transfers('refundable')]: '0x50 1x70',
      [transfers('refundable', '1:137')]: '0x50 1x70',
      [value('expired')]: '0x30 2500x20 1000x70',
      [value('refundable')]: '0x50 1500.5x70',
    };
    const reported = (minutes: number, count: number, values: string): Spoken => ({
      alert: 'IntentwatchMoneyStuck',
      minutes,
      labels: { job: 'intentwatch', severity: 'critical' },
      annotations: {
        summary: 'Money is stuck: transfers have expired, failed or are to be refunded.',
        description: `${count} transfers are neither delivered nor paid back. They have sent, as far as is known: ${values}. intentwatch ls --status refundable expired failed lists them.`,
        runbook_url: 'docs/operations.md#intentwatchmoneystuck',
      },
    });
    // It has been one alert since minute 31 or 32: groups of rules are evaluated in no order.
    const since = (minutes: number): Expected => ({
      expr: `time() - ALERTS_FOR_STATE{alertname="IntentwatchMoneyStuck"} >= bool ${(minutes - 32) * 60}`,
      minutes,
      samples: [
        { labels: '{alertname="IntentwatchMoneyStuck", job="intentwatch", severity="critical"}', value: 1 },
      ],
    });
    expect(
      await play(moving, [since(100)], [reported(40, 2, '2.5k USDC'), reported(100, 3, '2.501k USDC')]),
    ).toBe('');
  },
);

test(
  `a route of which as much has been overdue for hours is not rising${unlessInstalled}`,
  options,
  async () => {
    const none = { expr: 'ALERTS{alertname="IntentwatchOverdueRising"}', minutes: 119, samples: [] };
    expect(await play({ ...HEALTHY, [transfers('overdue')]: '15x120' }, [none])).toBe('');
    // The same holds for one on which hardly any transfer is under way.
    const few = { [transfers('pending')]: '1x120', [transfers('overdue')]: '0x60 1x60' };
    expect(await play({ ...HEALTHY, ...few }, [none])).toBe('');
  },
);

test(`a receiver that was paused is not reported to be owed events${unlessInstalled}`, options, async () => {
  const paused = { [UNDELIVERED]: '0+60x120', [receiver('paused')]: '1x120' };
  const none = { expr: 'ALERTS{alertname="IntentwatchEventsUndelivered"}', minutes: 110, samples: [] };
  expect(await play({ ...HEALTHY, ...paused }, [none])).toBe('');
});

test(`the mixin has the same rules for another job, with a runbook elsewhere${jsonnet.note}`, {
  skip: jsonnet.skip,
}, async () => {
  const code = `(import '${MIXIN_FILE}') + { _config+:: { selector: 'job="mine"', runbookUrl: 'https://wiki.example.com/x#%s' } }`;
  const run = spawnSync('jsonnet', ['-e', `local mixin = ${code}; mixin.prometheusAlerts`], {
    encoding: 'utf8',
  });
  const groups = RULES.parse(JSON.parse(run.stdout || '{}')).groups;
  expect(run.stdout).not.toContain('job=\\"intentwatch\\"');
  expect(run.stdout).toContain('up{job=\\"mine\\"} == 0');
  const made = groups.flatMap((group) => group.rules);
  const expected = ALERTS.map((rule) => {
    const runbook = `https://wiki.example.com/x#${rule.alert.toLowerCase()}`;
    const expr = rule.expr.replaceAll('job="intentwatch"', 'job="mine"');
    return { ...rule, expr, annotations: { ...rule.annotations, runbook_url: runbook } };
  });
  expect(made).toEqual(expected);
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-mixin-'));
  const file = join(folder, 'rules.json');
  await writeFile(file, run.stdout);
  const checked = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' });
  await rm(folder, { recursive: true, maxRetries: 5 });
  expect(`${checked.stdout}${checked.stderr}`).toContain(`SUCCESS: ${ALERTS.length} rules found`);
});
