import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { Alertmanager } from '../support/alertmanager.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { Prometheus, RULES_FILE } from '../support/prometheus.ts';

const { later, started } = opening();

const installation = needs(PARTS.alertmanager);

/** The shipped rules with shorter `for` spans: a sandbox lives faster. */
async function quickRules(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-quick-rules-'));
  later(() => rm(folder, { recursive: true, maxRetries: 5 }));
  const file = join(folder, 'rules.yml');
  const shipped = await readFile(RULES_FILE, 'utf8');
  await writeFile(file, shipped.replaceAll(/^( +for:) .*$/gm, '$1 1s'));
  return file;
}

test(`money that is stuck leads to one alert at a receiver, with its value, which resolves when it is paid back${installation.note}`, {
  skip: installation.skip,
}, async () => {
  const sandbox = await started(new Sandbox({ seed: 3, wallets: 10, transfersPerSecond: 15, timeScale: 6 }));
  const stuck = await eventually('some transfers to expire', () => {
    const latest = new Map(sandbox.transitions().map(({ subject, to }) => [subject, to]));
    const found = [...latest].flatMap(([subject, to]) => (to === 'expired' ? subject : []));
    return found.length >= 4 && found;
  });
  sandbox.setPace(0);
  const hook = await started(new TestReceiver());
  const { daemon } = await startDaemon({
    baseUrl: sandbox.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [
      { name: 's', intents: stuck.map((subject) => subject.replace('intent:', '')), receivers: ['hook'] },
    ],
  });
  later(() => daemon.close());
  const alertmanager = await started(new Alertmanager('IntentwatchMoneyStuck'));
  const prometheus = new Prometheus();
  later(() => prometheus.close());
  const rulesFile = await quickRules();
  await prometheus.start(new URL(daemon.url).host, { rulesFile, alertmanager: alertmanager.address });

  await eventually('the alert to resolve', () => alertmanager.notices.at(-1)?.status === 'resolved');
  expect(alertmanager.notices.map(({ status, alerts }) => [status, alerts.length])).toEqual([
    ['firing', 1],
    ['resolved', 1],
  ]);
  const [reported] = alertmanager.notices[0]?.alerts ?? [];
  expect(reported?.labels).toEqual({
    alertname: 'IntentwatchMoneyStuck',
    job: 'intentwatch',
    severity: 'critical',
  });
  expect(reported?.annotations.description).toMatch(
    /^\d+ transfers are neither delivered nor paid back\. They have sent, as far as is known:( [\d.]+k? USD\S+)+\. /,
  );
  const ends = new Map(sandbox.transitions().map(({ subject, to }) => [subject, to]));
  expect(new Set(stuck.map((subject) => ends.get(subject)))).toEqual(new Set(['refunded']));
});
