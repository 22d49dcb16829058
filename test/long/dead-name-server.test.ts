import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { configYaml, testPrefix } from '../support/daemon.ts';
import { DnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { appendOperatorEvent, operatorEvent } from '../support/operator-event.ts';
import { noteOf } from '../support/optional-parts.ts';
import { missingForOwnNames, runWithOwnNames } from '../support/own-names.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** Loopback, and by custom unused. */
const NAME_SERVER = '127.0.0.153';

const SICK = { type: 'upstream.unreachable', count: 30 };
const WELL = { type: 'upstream.reachable', count: 30 };

const ATTEMPTED = z.object({
  msg: z.literal('delivery.attempted'),
  receiver: z.string(),
  result: z.string(),
  reason: z.string(),
});

const { later, started } = opening();

const missing = await missingForOwnNames(NAME_SERVER);
const because = noteOf(missing === null ? [] : [missing]);

test.skipIf(missing !== null)(
  `a receiver with a dead name server delays no other receiver and no poll${because}`,
  async () => {
    const names = new DnsServer(({ name, type }) =>
      name === 'dead.test' ? 'nothing' : type === 'A' ? ['127.0.0.1'] : [],
    );
    await names.start({ address: NAME_SERVER, port: 53 });
    later(() => names.close());
    const byName = (url: string, name: string): string => url.replace('127.0.0.1', name);
    // Every connection is new, and resolves the name again.
    const hook = await started(new Hook());
    hook.headers = { connection: 'close' };
    const upstream = await started(
      new ScriptedUpstream(({ query }) => ({
        status: 200,
        headers: { connection: 'close' },
        body: JSON.stringify({ results: [intentRecord(query.intentHash ?? '', 'pending', 1)] }),
      })),
    );
    const prefix = testPrefix();
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-names-'));
    later(() => rm(folder, { recursive: true, maxRetries: 5 }));
    const [resolvConf, config] = [join(folder, 'resolv.conf'), join(folder, 'intentwatch.yaml')];
    await writeFile(resolvConf, `nameserver ${NAME_SERVER}\n`);
    await writeFile(
      config,
      configYaml({
        baseUrl: upstream.url,
        redisUrl: inject('redisUrl'),
        prefix,
        receivers: {
          sick: { url: 'http://dead.test/', more: { events: [SICK.type], concurrency: 20, timeout: '2m' } },
          well: { url: byName(hook.url, 'well.test'), more: { events: [WELL.type], timeout: '30s' } },
        },
        subscriptions: [
          {
            name: 's',
            intents: Array.from({ length: 40 }, (_, index) => hashOf(index)),
            receivers: ['sick', 'well'],
          },
        ],
        more: {
          upstream: {
            baseUrl: byName(upstream.url, 'upstream.test'),
            apiKey: 'sandbox-key',
            requestsPerSecond: 20,
            // More than a busy machine needs; behind lookups of the dead name, each request would wait longer.
            timeout: '30s',
            allowInsecure: true,
          },
        },
      }),
    );
    const daemon = await runWithOwnNames(resolvConf, [process.execPath, MAIN, 'start', '--config', config]);
    later(() => daemon.end('SIGKILL'));
    await daemon.line(/"msg":"daemon.started"/);

    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    later(() => disconnect(redis));
    const keys = new Keys(prefix);
    const append = ({ type, count }: typeof SICK): Promise<unknown> =>
      Promise.all(
        Array.from({ length: count }, (_, index) =>
          appendOperatorEvent(redis, keys, operatorEvent(type, index)),
        ),
      );
    await append(SICK);
    await eventually('the name that nobody answers for is requested', () =>
      names.requests.some(({ name }) => name === 'dead.test'),
    );
    const polls = upstream.requests.length;
    await append(WELL);
    await hook.until((came) => came.length >= WELL.count);
    await eventually('polls go on', () => upstream.requests.length > polls);

    const lines = daemon.stdout.map((line): object => JSON.parse(line));
    const attempts = lines.flatMap((line) => ATTEMPTED.safeParse(line).data ?? []);
    expect(attempts.filter(({ receiver, result }) => receiver === 'well' && result !== 'delivered')).toEqual(
      [],
    );
    expect(lines.filter((line) => JSON.stringify(line).includes('poll.failed'))).toEqual([]);
  },
);
