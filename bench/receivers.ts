import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { freePort } from '../test/support/port.ts';
import { Program } from '../test/support/program.ts';
import { printTargets } from './detection/targets.ts';
import { memoryOf } from './memory/footprint.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

const REQUESTS_PER_SECOND = 400;
const SAMPLE_EVERY_MS = 1_000;
const LONGEST_MS = 300_000;

const MB = 1_000_000;
const MOST = { openedSeconds: 60, processMb: 500, silentSeconds: 5 };

/**
 * Measures the cost of notifying many receivers of everything: from the first event until every delivery is opened, the
 * memory of the process meanwhile, and whether the upstream is polled all the time.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { receivers: { type: 'string' }, events: { type: 'string' } },
  });
  const receivers = Number(values.receivers ?? 2_000);
  const events = Number(values.events ?? 400);
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
  const upstream = await Program.start(join(import.meta.dirname, 'memory/upstream.ts'), []);
  const [, port = ''] = await upstream.line(/listening on (\d+)/);
  let delivered = 0;
  const hook = createServer((request, response) => {
    request.resume().once('end', () => {
      delivered++;
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  let daemon: Program | null = null;
  try {
    const metricsPort = await freePort();
    const names = Array.from({ length: receivers }, (_, at) => `receiver-${at}`);
    const config = {
      upstream: {
        baseUrl: `http://127.0.0.1:${port}`,
        apiKey: 'sandbox-key',
        requestsPerSecond: REQUESTS_PER_SECOND,
      },
      dataDir: join(folder, 'data'),
      server: { host: '127.0.0.1', port: metricsPort },
      receivers: names.map((name) => ({
        name,
        type: 'webhook',
        url: `http://127.0.0.1:${(hook.address() as AddressInfo).port}/${name}`,
        secrets: [SECRET],
        allowPrivateNetwork: true,
        allowInsecure: true,
      })),
      subscriptions: [
        { name: 'all', intents: Array.from({ length: events }, (_, at) => hashOf(at)), receivers: names },
      ],
    };
    const file = join(folder, 'intentwatch.yaml');
    await writeFile(file, stringify(config));
    daemon = await Program.start(MAIN, ['start', '--config', file, '--log-level', 'error']);
    const requests = async (): Promise<number> =>
      Number(await (await fetch(`http://127.0.0.1:${port}/requests`)).text());
    const found = await watch(daemon.pid, { all: receivers * events, metricsPort, requests });
    console.log(`${receivers} receivers, ${events} events: ${delivered} delivered when all were opened`);
    return printTargets([
      {
        what: 'seconds from the first to the last delivery that is opened',
        found: found.seconds,
        most: MOST.openedSeconds,
      },
      { what: 'MB of the process at most', found: found.most / MB, most: MOST.processMb },
      {
        what: 'seconds without a request to the upstream at most',
        found: found.silentSeconds,
        most: MOST.silentSeconds,
      },
    ])
      ? 0
      : 1;
  } finally {
    await daemon?.end('SIGKILL');
    await upstream.end('SIGKILL');
    hook.closeAllConnections();
    hook.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Follows a daemon until all deliveries are opened. Memory in bytes. */
async function watch(
  pid: number,
  { all, metricsPort, requests }: { all: number; metricsPort: number; requests: () => Promise<number> },
): Promise<{ seconds: number; most: number; silentSeconds: number }> {
  const endMs = performance.now() + LONGEST_MS;
  let [firstMs, most, silentMs, before]: [number | null, number, number, number] = [null, 0, 0, 0];
  let requestedAtMs = performance.now();
  for (;;) {
    await wait(SAMPLE_EVERY_MS);
    const nowMs = performance.now();
    const count = await requests();
    if (count > before || count === 0) requestedAtMs = nowMs;
    before = count;
    silentMs = Math.max(silentMs, nowMs - requestedAtMs);
    most = Math.max(most, (await memoryOf(pid)).now);
    const opened = await openedOf(metricsPort);
    if (opened > 0) firstMs ??= nowMs;
    if (opened >= all && firstMs !== null)
      return { seconds: (performance.now() - firstMs) / 1_000, most, silentSeconds: silentMs / 1_000 };
    if (nowMs > endMs) throw new Error(`found ${opened} deliveries opened, expected ${all}`);
  }
}

/** The metric of opened deliveries, over all receivers; 0 while the daemon starts. */
async function openedOf(port: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => null);
  const lines = ((await answer?.text()) ?? '').split('\n');
  return lines
    .filter((line) => line.startsWith('intentwatch_deliveries_opened_total'))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

function hashOf(number: number): string {
  return `0x${number.toString(16).padStart(64, '0')}`;
}
