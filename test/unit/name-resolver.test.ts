import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NameResolver, parseHosts, parseResolvConf } from '../../src/network/resolver.ts';
import { type DnsAnswer, type DnsQuestion, DnsServer } from '../support/dns-server.ts';

/** A resolver of a system whose one name server gives the test's answers. */
async function namedBy(
  answer: (question: DnsQuestion) => DnsAnswer,
  { hosts = '', conf = '', timeoutMs = 60_000 } = {},
): Promise<{ names: NameResolver; server: DnsServer; write: (file: string, text: string) => Promise<void> }> {
  const server = new DnsServer(answer);
  await server.start();
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-etc-'));
  const write = (file: string, text: string): Promise<void> => writeFile(join(folder, file), text);
  await write('hosts', hosts);
  await write('resolv.conf', `nameserver ${server.nameServer}\n${conf}`);
  const names = new NameResolver({ timeoutMs, folder });
  onTestFinished(async () => {
    names.close();
    await server.close();
    await rm(folder, { recursive: true });
  });
  return { names, server, write };
}

const addressesOf = async (names: NameResolver, name: string): Promise<string[]> =>
  (await names.resolve(name)).map(({ address }) => address);

describe('a name', () => {
  test('has the addresses of both families, IPv4 first', async () => {
    const { names } = await namedBy(({ type }) =>
      type === 'A' ? ['192.0.2.1', '192.0.2.2'] : ['2001:db8::1'],
    );
    expect(await names.resolve('hooks.example.com')).toEqual([
      { address: '192.0.2.1', family: 4 },
      { address: '192.0.2.2', family: 4 },
      { address: '2001:db8::1', family: 6 },
    ]);
  });

  test('with one family only has that one', async () => {
    const { names } = await namedBy(({ type }) => (type === 'A' ? [] : ['2001:db8::1']));
    expect(await addressesOf(names, 'hooks.example.com')).toEqual(['2001:db8::1']);
  });

  test('does not wait for a family that is never answered for', async () => {
    const { names } = await namedBy(({ type }) => (type === 'A' ? ['192.0.2.1'] : 'nothing'), {
      timeoutMs: 60_000,
    });
    expect(await addressesOf(names, 'hooks.example.com')).toEqual(['192.0.2.1']);
  });

  test('that is an address is not resolved', async () => {
    const { names, server } = await namedBy(() => 'nothing');
    expect(await addressesOf(names, '192.0.2.9')).toEqual(['192.0.2.9']);
    expect(await addressesOf(names, '::1')).toEqual(['::1']);
    expect(server.requests).toEqual([]);
  });

  test('that does not exist, or has no address, is reported so', async () => {
    const { names } = await namedBy(({ name }) => (name === 'empty.example.com' ? [] : 'no such name'));
    await expect(names.resolve('gone.example.com')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    await expect(names.resolve('empty.example.com')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });

  test('with a failing name server may work later, and no message names it', async () => {
    const { names } = await namedBy(() => 'server failure');
    const failed = names.resolve('hooks.example.com');
    await expect(failed).rejects.toMatchObject({ code: 'EAI_AGAIN' });
    await expect(failed).rejects.not.toThrow('hooks.example.com');
  });

  test('with a silent name server fails when the time is over', async () => {
    const { names } = await namedBy(() => 'nothing', { timeoutMs: 300 });
    await expect(names.resolve('hooks.example.com')).rejects.toMatchObject({ code: 'EAI_AGAIN' });
  });

  test('is resolved once for all concurrent callers, and cached for seconds, also when it failed', async () => {
    const { names, server } = await namedBy(({ name, type }) =>
      name !== 'hooks.example.com' ? 'no such name' : type === 'A' ? ['192.0.2.1'] : [],
    );
    await Promise.all(Array.from({ length: 50 }, () => names.resolve('hooks.example.com')));
    await names.resolve('HOOKS.example.com');
    expect(server.requests).toHaveLength(2);
    for (const _ of [1, 2]) await expect(names.resolve('gone.example.com')).rejects.toThrow('no address');
    expect(server.requests).toHaveLength(4);
  });

  test('that is being resolved at close fails at once', async () => {
    const { names } = await namedBy(() => 'nothing', { timeoutMs: 100_000 });
    const failed = names.resolve('hooks.example.com');
    names.close();
    await expect(failed).rejects.toMatchObject({ code: 'EAI_AGAIN' });
  });
});

describe("the system's files", () => {
  test('hosts come before the name server, in any case of letters, and are read again when they change', async () => {
    const { names, server, write } = await namedBy(() => 'no such name', {
      hosts: '192.0.2.7 Backend backend.internal # ours\n2001:db8::7 backend\n',
    });
    expect(await addressesOf(names, 'BACKEND')).toEqual(['192.0.2.7', '2001:db8::7']);
    expect(await addressesOf(names, 'backend.internal.')).toEqual(['192.0.2.7']);
    expect(server.requests).toEqual([]);
    await write('hosts', '192.0.2.8 backend # moved to another place\n');
    expect(await addressesOf(names, 'backend')).toEqual(['192.0.2.8']);
  });

  test('localhost is this machine even where hosts lacks it', async () => {
    const { names, server } = await namedBy(() => ['192.0.2.1']);
    expect(await addressesOf(names, 'localhost')).toEqual(['127.0.0.1', '::1']);
    expect(await addressesOf(names, 'api.localhost')).toEqual(['127.0.0.1', '::1']);
    expect(server.requests).toEqual([]);
  });

  test.each([
    [
      'a short name is resolved by the search list first',
      'backend',
      ['backend.a.test', 'backend.b.test', 'backend'],
    ],
    ['a name with enough dots is whole first', 'x.y.z', ['x.y.z', 'x.y.z.a.test', 'x.y.z.b.test']],
    ['a name with a dot at its end is whole', 'backend.', ['backend']],
  ])('%s', async (_, name, tried) => {
    const conf = 'search a.test. b.test\noptions timeout:1 ndots:2\n';
    const { names, server } = await namedBy(() => 'no such name', { conf });
    await expect(names.resolve(name)).rejects.toMatchObject({ code: 'ENOTFOUND' });
    expect([...new Set(server.requests.map((requests) => requests.name))]).toEqual(tried);
  });

  test('a name server that fails ends the search: the name may be there', async () => {
    const { names, server } = await namedBy(() => 'server failure', { conf: 'search a.test b.test\n' });
    await expect(names.resolve('backend')).rejects.toMatchObject({ code: 'EAI_AGAIN' });
    expect(new Set(server.requests.map(({ name }) => name))).toEqual(new Set(['backend.a.test']));
  });

  test('another name server is requested once resolv.conf names it', async () => {
    const { names, write } = await namedBy(() => 'no such name');
    await expect(names.resolve('a.example.com')).rejects.toThrow();
    const other = await namedBy(({ type }) => (type === 'A' ? ['192.0.2.3'] : []));
    await write('resolv.conf', `# changed\nnameserver ${other.server.nameServer}\n`);
    expect(await addressesOf(names, 'b.example.com')).toEqual(['192.0.2.3']);
  });

  test('the second name server is requested where the first is silent', async () => {
    const silent = await namedBy(() => 'nothing');
    const { names } = await namedBy(({ type }) => (type === 'A' ? ['192.0.2.1'] : []), {
      conf: `nameserver ${silent.server.nameServer}\n`,
    });
    expect(await addressesOf(names, 'hooks.example.com')).toEqual(['192.0.2.1']);
  });

  test('lines without meaning are skipped', () => {
    expect(parseHosts('\nnonsense here\n127.0.0.1\n::1 a b\r\n#x y\n')).toEqual(
      new Map([
        ['a', ['::1']],
        ['b', ['::1']],
      ]),
    );
    expect(
      parseResolvConf(
        '; c\nnameserver 127.0.0.53\nnameserver nowhere\nnameserver\ndomain x.test\noptions ndots:99\n',
      ),
    ).toEqual({ servers: ['127.0.0.53'], search: ['x.test'], ndots: 15 });
  });
});
