import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { stringify } from 'yaml';
import { DemoReceiver } from '../../demo/receiver.ts';
import { loadConfig } from '../../src/config/file/load.ts';
import { Daemon } from '../../src/daemon/daemon.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { Signals } from '../../src/signals.ts';
import { upstreamSettings } from './deployment.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** Longer than a machine stalls: a request that times out is repeated, and would be counted twice. */
const PATIENCE = '2m';

/** The part of a config that a test chooses; the rest is the same for every test. */
export type TestConfig = {
  baseUrl: string;
  redisUrl: string;
  prefix: string;
  receivers: Record<string, { url: string; more?: object }>;
  subscriptions: object[];
  more?: object;
  /** Further members of `upstream`. */
  upstream?: object;
};

/** Makes a Redis prefix of a test's own. */
export function testPrefix(): string {
  return `t-${randomUUID()}`;
}

/** Writes a config as YAML, for a daemon with an external Redis and any free port. */
export function configYaml(config: TestConfig): string {
  const sections: { upstream: object } = {
    upstream: {
      baseUrl: config.baseUrl,
      apiKey: 'sandbox-key',
      requestsPerSecond: 100,
      gatewayRequestsPerSecond: 50,
      timeout: PATIENCE,
      ...config.upstream,
    },
    ...config.more,
  };
  return stringify({
    redis: { url: config.redisUrl, prefix: config.prefix },
    server: { host: '127.0.0.1', port: 0 },
    receivers: Object.entries(config.receivers).map(([name, { url, more = {} }]) => ({
      name,
      url,
      allowInsecure: true,
      ...('type' in more
        ? {}
        : { type: 'webhook', secrets: [SECRET], allowPrivateNetwork: true, timeout: PATIENCE }),
      ...more,
    })),
    subscriptions: config.subscriptions,
    ...sections,
    upstream: upstreamSettings(sections.upstream),
  });
}

/** Starts a daemon inside the test's process, on real Redis and HTTP. `onLine` gets every line of its log. */
export async function startDaemon(
  config: TestConfig,
  onLine?: (line: string) => void,
  signals = new Signals(),
): Promise<{ daemon: Daemon; signals: Signals }> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-'));
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, configYaml(config));
  const log = onLine === undefined ? pino({ level: 'silent' }) : pino({ base: null }, { write: onLine });
  const daemon = new Daemon({ config: await loadConfig(file, {}), log, signals });
  await daemon.start();
  await rm(folder, { recursive: true, maxRetries: 5 });
  return { daemon, signals };
}

/** A receiver that verifies its webhooks, and can be awaited. */
export class TestReceiver {
  readonly #receiver: DemoReceiver;
  #waiting: (() => void)[] = [];

  constructor() {
    this.#receiver = new DemoReceiver({ secret: SECRET, onWebhook: () => this.#wake() });
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async start(): Promise<void> {
    await this.#receiver.start();
  }

  get url(): string {
    return this.#receiver.url;
  }

  get events(): RenderedEvent[] {
    return this.#receiver.received.map((received) => {
      if (!received.verified) throw new Error(`the signature of ${received.id} does not verify`);
      return received.event;
    });
  }

  async until(condition: (events: RenderedEvent[]) => boolean): Promise<RenderedEvent[]> {
    while (!condition(this.events)) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.events;
  }

  async close(): Promise<void> {
    await this.#receiver.close();
  }
}

/** Resolves with the first emission of a signal that matches. */
export async function signalled<T>(
  listen: (take: (value: T) => void) => void,
  matches: (value: T) => boolean = () => true,
): Promise<T> {
  return new Promise((resolve) => listen((value) => (matches(value) ? resolve(value) : undefined)));
}
