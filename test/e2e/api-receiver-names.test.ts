import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { configYaml, testPrefix } from '../support/daemon.ts';
import { DnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { noteOf } from '../support/optional-parts.ts';
import { missingForOwnNames, runWithOwnNames } from '../support/own-names.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** Loopback, and by custom unused; each test has a name server of its own. */
const NAME_SERVER = '127.0.0.154';

/** The one address of this machine that the config permits: it represents the public internet. */
const PERMITTED = '127.0.0.2';

const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
const REFUSED = 'private or reserved address; only server.apiReceivers.allowNetworks permits it';

const { later, started } = opening();

/** A server on every IPv4 address of this machine: it answers each request, and records the called address. */
async function openServer() {
  const called: string[] = [];
  const server = createServer((socket) => {
    called.push(socket.localAddress ?? '');
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n'));
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  later(() => new Promise((resolve) => server.close(resolve)));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('found no port');
  return { port: address.port, called };
}

const missing = await missingForOwnNames(NAME_SERVER);
const because = noteOf(missing === null ? [] : [missing]);

test.skipIf(missing !== null)(
  `a receiver made through the API is called at no forbidden address, for any result of its name at any time${because}`,
  async () => {
    const { port, called } = await openServer();
    const answers: Record<string, { A?: string[]; AAAA?: string[] }> = {
      'inside.test': { A: ['127.0.0.1'] },
      'mapped.test': { AAAA: ['::ffff:7f00:1'] },
      'nat64.test': { AAAA: ['64:ff9b::7f00:1'] },
      'mixed.test': { A: ['127.0.0.1', PERMITTED, '10.0.0.1'], AAAA: ['::1'] },
      'rebinding.test': { A: [PERMITTED] },
    };
    const names = new DnsServer(({ name, type }) => answers[name]?.[type] ?? []);
    names.ttlSeconds = 0;
    await names.start({ address: NAME_SERVER, port: 53 });
    later(() => names.close());
    const statuses = new Map<string, string>();
    const upstream = await started(upstreamOfStatuses(statuses));
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-names-'));
    later(() => rm(folder, { recursive: true, maxRetries: 5 }));
    const [resolvConf, config] = [join(folder, 'resolv.conf'), join(folder, 'intentwatch.yaml')];
    await writeFile(resolvConf, `nameserver ${NAME_SERVER}\n`);
    await writeFile(
      config,
      configYaml({
        baseUrl: upstream.url,
        redisUrl: inject('redisUrl'),
        prefix: testPrefix(),
        receivers: { backend: { url: `http://inside.test:${port}/` } },
        subscriptions: [],
        more: {
          server: {
            host: '127.0.0.1',
            port: 0,
            secretsKey: 'a-key-that-is-long-enough-for-it',
            apiReceivers: {
              allowNetworks: [`${PERMITTED}/32`],
              allowInsecure: true,
              types: ['webhook', 'postgres'],
            },
          },
        },
      }),
    );
    const daemon = await runWithOwnNames(resolvConf, [process.execPath, MAIN, 'start', '--config', config]);
    later(() => daemon.end('SIGKILL'));
    const [, url = ''] = await daemon.line(/"url":"(http[^"]+)".*"msg":"server.listening"/);
    await daemon.line(/"msg":"daemon.started"/);
    const post = async (path: string, body?: object): Promise<{ status: number; text: string }> => {
      const sent =
        body === undefined
          ? {}
          : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
      const answer = await fetch(`${url}/api/v1${path}`, { method: 'POST', ...sent });
      return { status: answer.status, text: await answer.text() };
    };
    const make = async (name: string, more: object = {}): Promise<void> => {
      const definition = {
        name,
        type: 'webhook',
        url: `http://${name}.test:${port}/`,
        secrets: [SECRET],
        allowPrivateNetwork: true,
        allowInsecure: true,
        retries: { delays: Array(90).fill('1s') },
        ...more,
      };
      expect(await post('/receivers', definition)).toMatchObject({ status: 201 });
    };

    await make('inside');
    await make('inside-https', { url: `https://inside.test:${port}/` });
    await make('mapped');
    await make('nat64');
    const rows = { type: 'postgres', url: `postgres://u:p@inside.test:${port}/x` };
    await make('rows', { ...rows, secrets: undefined, allowPrivateNetwork: undefined });
    for (const name of ['inside', 'inside-https', 'mapped', 'nat64', 'rows']) {
      const { text } = await post(`/receivers/${name}/test`);
      expect([name, text]).toEqual([name, expect.stringContaining(REFUSED)]);
      expect(text).not.toContain('127.0.0.1');
    }
    expect(called).toEqual([]);

    await make('mixed');
    expect((await post('/receivers/mixed/test')).text).toContain('"outcome":"delivered"');
    expect(called).toEqual([PERMITTED]);

    // The name changes between two connections of one receiver.
    await make('rebinding');
    await post('/subjects', { kind: 'intent', id: hashOf(1), receivers: ['rebinding'] });
    statuses.set(hashOf(1), 'pending');
    await eventually('the first webhook', () => called.length >= 2);
    answers['rebinding.test'] = { A: ['127.0.0.1'] };
    statuses.set(hashOf(1), 'filled');
    await daemon.line(new RegExp(`"receiver":"rebinding".*${REFUSED}`));
    const before = called.length;
    answers['rebinding.test'] = { A: [PERMITTED] };
    await eventually('the second webhook', () => called.length > before);
    // A delivery with too slow an answer is repeated once.
    expect(new Set(called)).toEqual(new Set([PERMITTED]));

    // A receiver of the config has no such limit.
    expect((await post('/receivers/backend/test')).text).toContain('"outcome":"delivered"');
    expect(called.at(-1)).toBe('127.0.0.1');
  },
);
