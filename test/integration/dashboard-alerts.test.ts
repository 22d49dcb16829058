import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { playTrouble, TROUBLES } from '../support/alert-troubles.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { ALERTS, HEALTHY, play } from '../support/played-rules.ts';

const RUNBOOK_FILE = new URL('../../docs/operations.md', import.meta.url).pathname;
const LOGS_FILE = new URL('../../docs/logs.md', import.meta.url).pathname;
const SCRAPE_FILE = new URL('../../config/prometheus/scrape.yml', import.meta.url).pathname;

const promtool = needs(PARTS.promtool);

const options = { skip: promtool.skip };
const unlessInstalled = promtool.note;

test('every alert has a trouble here that sets it off', () => {
  expect(Object.keys(TROUBLES)).toEqual(ALERTS.map(({ alert }) => alert));
});

test('counts of events are reported whole: Prometheus makes 2.195 of 2', () => {
  const reported = ALERTS.filter(({ expr }) => /increase\(\S+\[1h\]\) > 0$/m.test(expr));
  expect(reported.map(({ alert }) => alert)).toEqual(
    expect.arrayContaining(['IntentwatchDisputed', 'IntentwatchUnproven', 'IntentwatchDeadLetters']),
  );
  for (const { alert, annotations } of reported) {
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

test('a command that an alert names is in its runbook', async () => {
  const runbook = await readFile(RUNBOOK_FILE, 'utf8');
  const named = ALERTS.flatMap(({ annotations }) =>
    [...annotations.description.matchAll(/(intentwatch [a-z -]+) (?:lists|shows) /g)].map(
      ([, command = '']) => command,
    ),
  );
  expect(named).toContain('intentwatch ls --status refundable expired failed');
  expect(named.filter((command) => !runbook.includes(command))).toEqual([]);
});

test(`a healthy daemon sets off no alert in two hours${unlessInstalled}`, options, async () => {
  const quiet = [1, 5, 15, 45, 75, 119].map((minutes) => ({
    expr: 'ALERTS{alertstate="firing"}',
    minutes,
    samples: [],
  }));
  expect(await play(HEALTHY, quiet)).toBe('');
});

test(`an alert is set off by its trouble${unlessInstalled}`, options, async () => {
  expect(await playTrouble('IntentwatchMoneyStuck')).toBe('');
});

test(`the scrape config and its rules are valid${unlessInstalled}`, options, () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'config', SCRAPE_FILE], {
    encoding: 'utf8',
  });
  expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, '']);
});

const ALERTMANAGER_FILE = new URL('../../config/prometheus/alertmanager.yml', import.meta.url).pathname;
const amtool = needs(PARTS.amtool);

const INHIBITION = z.object({
  inhibit_rules: z.array(
    z.object({
      source_matchers: z.array(z.string()),
      target_matchers: z.array(z.string()),
      equal: z.array(z.string()),
    }),
  ),
});

function named(matchers: readonly string[]): string[] {
  return matchers.flatMap((matcher) => (/^alertname=~?"(.*)"$/.exec(matcher)?.[1] ?? '').split('|'));
}

test(`the shipped Alertmanager config is valid${amtool.note}`, { skip: amtool.skip }, () => {
  const { status, stdout, stderr } = spawnSync('amtool', ['check-config', ALERTMANAGER_FILE], {
    encoding: 'utf8',
  });
  expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, '']);
});

test('alerts that silence others, and those that are silenced, are there; stuck money never is', async () => {
  const rules = INHIBITION.parse(parse(await readFile(ALERTMANAGER_FILE, 'utf8'))).inhibit_rules;
  const names = ALERTS.map(({ alert }) => alert);
  const targets = rules.flatMap(({ target_matchers }) => named(target_matchers));
  const sources = rules.flatMap(({ source_matchers }) => named(source_matchers));
  expect([...sources, ...targets].filter((alert) => !names.includes(alert))).toEqual([]);
  expect(targets).not.toContain('IntentwatchMoneyStuck');
  expect(targets).not.toContain('IntentwatchDisputed');
});
