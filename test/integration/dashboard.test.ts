import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import { DEFINITIONS } from '../../src/metrics/definitions.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import type { SurfaceState } from '../../src/metrics/sources.ts';
import { Server } from '../../src/server/server.ts';
import { Signals } from '../../src/signals.ts';
import { freePort } from '../support/port.ts';
import { STANDING } from '../support/standing.ts';

const RULES_FILE = new URL('../../config/prometheus/rules.yml', import.meta.url).pathname;
const DASHBOARD_FILE = new URL('../../config/grafana/intentwatch.json', import.meta.url);

const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0;
const unlessInstalled = hasPrometheus ? '' : ' (skipped: prometheus is not installed)';

const TARGET = z.object({ expr: z.string(), refId: z.string() });
const DASHBOARD = z.object({
  panels: z.array(
    z.object({
      title: z.string(),
      type: z.string(),
      targets: z.array(TARGET).default([]),
      gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
    }),
  ),
});
const dashboard = DASHBOARD.parse(JSON.parse(await readFile(DASHBOARD_FILE, 'utf8')));
const panels = dashboard.panels.filter((panel) => panel.type !== 'row');
const queries = panels.flatMap(({ title, targets }) =>
  targets.map(({ expr, refId }) => ({ name: targets.length > 1 ? `${title} (${refId})` : title, expr })),
);

const IDLE: Omit<SurfaceState, 'surface'> = {
  state: 'ok',
  budget: 5,
  used: 0,
  price: 1,
  failing: 0,
  suspects: 0,
  overdueSeconds: 0,
};

/** A real Prometheus that scrapes `target` every second and evaluates the rules. */
class Prometheus {
  url = '';
  #folder = '';
  #child: ChildProcess | null = null;

  async start(target: string): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'intentwatch-prometheus-'));
    const config = join(this.#folder, 'prometheus.yml');
    await writeFile(
      config,
      stringify({
        global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
        scrape_configs: [{ job_name: 'intentwatch', static_configs: [{ targets: [target] }] }],
        rule_files: [RULES_FILE],
      }),
    );
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    const data = join(this.#folder, 'data');
    this.#child = spawn(
      'prometheus',
      [`--config.file=${config}`, `--storage.tsdb.path=${data}`, `--web.listen-address=127.0.0.1:${port}`],
      { stdio: 'ignore' },
    );
    await this.until('its API to answer', async () => (await fetch(`${this.url}/-/ready`)).ok);
  }

  /** Asks again and again until a condition holds. */
  async until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const holds = async (): Promise<boolean> => condition().catch(() => false);
    await vi.waitUntil(holds, { interval: 100, timeout: 20_000 }).catch((cause: unknown) => {
      throw new Error(`waited for Prometheus: ${what}`, { cause });
    });
  }

  async get(path: string): Promise<unknown> {
    const answer = await fetch(`${this.url}/api/v1/${path}`);
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
    return answer.json();
  }

  /** The number of series of an expression now. Throws with Prometheus' own words when it does not parse. */
  async count(expr: string): Promise<number> {
    const answer = await this.get(`query?query=${encodeURIComponent(expr)}`);
    return z.object({ data: z.object({ result: z.array(z.unknown()) }) }).parse(answer).data.result.length;
  }

  async close(): Promise<void> {
    if (this.#child !== null && this.#child.exitCode === null) {
      this.#child.kill('SIGTERM');
      await once(this.#child, 'exit');
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Emits every signal that a panel shows, so that nothing on the dashboard is empty. */
function emitEverything(signals: Signals): void {
  const delivery = { receiver: 'backend', eventId: 'evt_1', eventType: 'intent.filled' };
  const moved = { surface: 'status', reason: 'down' };
  signals.emit('upstream.answered', { endpoint: 'status', outcome: 'ok', durationSeconds: 0.2 });
  signals.emit('upstream.answered', { endpoint: 'vault', outcome: 'timeout', durationSeconds: 5 });
  signals.emit('upstream.answered', { endpoint: 'open-quotes', outcome: 'ok', durationSeconds: 1 });
  signals.emit('upstream.moved', { ...moved, before: 'ok', after: 'unreachable' });
  signals.emit('upstream.paused', { surface: 'status', seconds: 3 });
  signals.emit('poll.ended', { surface: 'status', kind: 'intent', outcome: 'answered', lagSeconds: 0.3 });
  signals.emit('poll.crashed', { subject: 'intent:0x01', crashes: 1 });
  signals.emit('claims.returned', { surface: 'status', count: 1 });
  signals.emit('record.decided', { subject: 'intent:0x01', kind: 'intent', outcome: 'first', reason: null });
  signals.emit('record.decided', {
    subject: 'intent:0x01',
    kind: 'intent',
    outcome: 'stale',
    reason: 'older',
  });
  signals.emit('transfer.delivered', { route: '8453:10', ratio: 0.998 });
  signals.emit('record.unreadable', { where: 'wallet:0x01', reason: 'result 0: no id' });
  for (const word of ['filled', 'overdue']) {
    signals.emit('event.committed', {
      kind: 'intent',
      event: {
        id: `evt_${word}`,
        type: `intent.${word}`,
        timestamp: '2026-11-20T11:31:00.123Z',
        data: {
          subject: { kind: 'intent', id: 'intent:0x01' },
          sequence: 1,
          status: 'filled',
          previousStatus: 'pending',
          changes: word === 'filled' ? ['status'] : [],
          record: {},
          upstreamUpdatedAt: 1_763_638_259,
          detectionDelaySeconds: 1.5,
        },
      },
    });
  }
  signals.emit('delivery.opened', delivery);
  signals.emit('delivery.attempted', {
    ...delivery,
    subject: null,
    attempt: 1,
    outcome: 'delivered',
    durationSeconds: 0.1,
    reason: '',
  });
  signals.emit('delivery.ended', { ...delivery, outcome: 'delivered' });
  signals.emit('relay.moved', { holding: true });
  signals.emit('repair.done', { what: 'poll-missing', subject: 'intent:0x01' });
  signals.emit('receiver.events-dropped', { receiver: 'backend', count: 2 });
}

test('every metric is on the dashboard or in an alert', async () => {
  const used = [...queries.map(({ expr }) => expr), await readFile(RULES_FILE, 'utf8')].join('\n');
  const unused = Object.values(DEFINITIONS).filter(
    ({ name }) => !new RegExp(`\\b${name}(_bucket|_sum)?\\b`).test(used),
  );
  expect(unused.map(({ name }) => name)).toEqual([]);
});

test('no two panels of the dashboard overlap, and none leaves the page', () => {
  const cells = new Map<string, string>();
  for (const { title, gridPos } of dashboard.panels) {
    expect([title, gridPos.x + gridPos.w <= 24]).toEqual([title, true]);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect([title, cells.get(`${x},${y}`)]).toEqual([title, undefined]);
        cells.set(`${x},${y}`, title);
      }
    }
  }
});

describe.skipIf(!hasPrometheus)(`against a real Prometheus${unlessInstalled}`, () => {
  const prometheus = new Prometheus();
  const signals = new Signals();
  const metrics = new Metrics({
    signals,
    sources: {
      subjects: async () => [
        { kind: 'intent', status: 'pending', count: 3 },
        { kind: 'wallet', status: 'watched', count: 2 },
      ],
      queues: async () => [{ queue: 'status', state: 'delayed', count: 5 }],
      deliveries: async () => [{ receiver: 'backend', pending: 1, dead: 1, removed: false }],
      receivers: async () => [
        { receiver: 'backend', state: 'ok', full: false, oldestSeconds: 1, nextAttemptSeconds: 0 },
      ],
      surfaces: async () => [
        { ...IDLE, surface: 'status', state: 'unreachable', budget: 5, used: 0.4, failing: 2, suspects: 1 },
        { ...IDLE, surface: 'gateway' },
        { ...IDLE, surface: 'quotes', budget: 1 },
      ],
      waits: async () => [{ kind: 'wallet', longestSeconds: 12 }],
      learned: async () => ({
        stages: [
          { route: '8453>10', stage: 'pending', observations: 41.5, medianSeconds: 24, p99Seconds: 130 },
        ],
        newTransfersPerSecond: 0.01,
      }),
      routes: async () => [
        {
          route: 'base-to-optimism',
          outputRatio: 0.998,
          feeRatio: 0.002,
          fillEstimateSeconds: 25,
          solvers: 3,
        },
      ],
    },
    standing: STANDING,
    receivers: [{ name: 'backend', type: 'webhook' }],
    routes: ['base-to-optimism'],
    version: '1.2.3',
    nodeVersion: process.version,
  });
  const server = new Server({
    host: '127.0.0.1',
    port: 0,
    metrics,
    readiness: async () => [],
    health: () => [],
    api: null,
  });

  beforeAll(async () => {
    const { url } = await server.start();
    await prometheus.start(new URL(url).host);
    // Counters at 0 have to be seen before they move, or nothing has increased.
    await prometheus.until(
      'a first scrape',
      async () => (await prometheus.count('intentwatch_build_info')) > 0,
    );
    emitEverything(signals);
    await prometheus.until(
      'a scrape of what was emitted',
      async () => (await prometheus.count('intentwatch_events_dropped_total == 2')) > 0,
    );
  });

  afterAll(async () => {
    metrics.close();
    await server.close();
    await prometheus.close();
  });

  test.each(queries)('the panel "$name" shows something', async ({ expr }) => {
    const asked = expr
      .replaceAll('$__rate_interval', '1m')
      .replaceAll('$__range', '1m')
      .replaceAll('$job', 'intentwatch');
    expect(asked).not.toContain('$');
    expect(await prometheus.count(asked), asked).toBeGreaterThan(0);
  });

  test('the job of the dashboard can be chosen', async () => {
    const values = await prometheus.get('label/job/values?match[]=intentwatch_build_info');
    expect(values).toMatchObject({ data: ['intentwatch'] });
  });

  test('every alert evaluates without an error', async () => {
    const RULES = z.object({
      data: z.object({
        groups: z.array(z.object({ rules: z.array(z.object({ name: z.string(), health: z.string() })) })),
      }),
    });
    const rules = async () =>
      RULES.parse(await prometheus.get('rules')).data.groups.flatMap((one) => one.rules);
    await prometheus.until('to have evaluated every rule', async () =>
      (await rules()).every(({ health }) => health !== 'unknown'),
    );
    const found = await rules();
    expect(found.length).toBeGreaterThan(10);
    expect(found.filter(({ health }) => health !== 'ok')).toEqual([]);
  });
});
