import { expect, inject, test } from 'vitest';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const WALLET = '0x1111111111111111111111111111111111111111';

test('records of kinds that are the daemon’s own are skipped, counted, and logged once a minute for each kind', async () => {
  let answers = 0;
  const upstream = await started(
    new ScriptedUpstream(() => {
      answers += 1;
      const updatedAt = Math.floor(Date.now() / 1_000) + 60;
      const record = (id: string, type: string) => ({ id, type, status: `seen${answers}`, updatedAt });
      return {
        records: [
          record('receiver:hook', 'intent'),
          record('receiver:other', 'intent'),
          record('Upstream:status', 'intent'),
          record('intentwatch:1', 'intent'),
          record('AUDIT:sandbox-key', 'intent'),
          record(`route:${'x'.repeat(1_000)}`, 'intent'),
          record('1234', 'Receiver'),
          record('wallet:sandbox-key', 'wallet'),
          record('routed-transfer:1', 'receiver'),
          intentRecord(hashOf(4), 'pending', updatedAt),
        ],
      };
    }),
  );
  const hook = await started(new TestReceiver());
  const lines: { msg: string; kind?: string; id?: string; reason?: string }[] = [];
  const { daemon } = await startDaemon(
    {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', wallets: [WALLET], receivers: ['hook'] }],
    },
    (line) => lines.push(JSON.parse(line)),
  );
  later(() => daemon.close());
  const events = await hook.until((all) => all.some(({ type }) => type === 'intent.pending'));
  const kinds = new Set(events.map(({ type }) => type.split('.')[0]));
  expect([...kinds].filter((kind) => kind !== 'routed-transfer')).toEqual(['intent']);
  const logged = lines.filter(({ msg }) => msg === 'record.reserved');
  expect(logged.map(({ kind, id }) => [kind, id])).toEqual([
    ['receiver', 'receiver:hook'],
    ['upstream', 'Upstream:status'],
    ['intentwatch', 'intentwatch:1'],
    ['audit', 'AUDIT:[secret]'],
    ['route', `route:${'x'.repeat(94)}`],
  ]);
  const unreadable = lines.find(({ msg }) => msg === 'record.unreadable');
  expect(unreadable?.reason).toBe('record "wallet:[secret]" names no subject');
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  const count = /intentwatch_records_reserved_total\{kind="receiver"\} (\d+)/.exec(metrics)?.[1];
  // Three of one answer, for any number of answers.
  expect(Number(count)).toBeGreaterThan(0);
  expect(Number(count) % 3).toBe(0);
});

test('a response of a reserved kind to a poll of one subject is skipped and counted, and the next response counts', async () => {
  const uuid = (n: number): string => `7d9f1c52-8a4e-4b6d-b0c3-2e5a9f7d1b6${n}`;
  const vault = '0xde709f2102306220921060314715629080e2fb77';
  const seen = new Set<string>();
  const upstream = await started(
    new ScriptedUpstream(({ path, query }) => {
      const place = Object.keys(query).find((name) => name !== 'sourceChainId') ?? path;
      const isFirst = !seen.has(place);
      seen.add(place);
      const status = isFirst ? 'stolen' : 'pending';
      const updatedAt = 1_763_638_259;
      const record = (reserved: object, usual: object) => ({
        records: [{ type: 'intent', status, updatedAt, ...(isFirst ? reserved : usual) }],
      });
      const data = (reserved: object, usual: object) => ({
        status: 200,
        body: JSON.stringify({ data: isFirst ? reserved : usual }),
      });
      if (query.intentHash !== undefined) {
        return record({ id: `UPSTREAM:${query.intentHash}` }, { id: `intent:${query.intentHash}` });
      }
      if (query.quoteId !== undefined) {
        return record({ id: query.quoteId, type: 'Audit' }, { id: `quote:${query.quoteId}`, type: 'quote' });
      }
      if (query.jobId !== undefined) {
        return record({ id: `route:${query.jobId}` }, { id: `gasless:${query.jobId}`, type: 'gasless' });
      }
      if (path.includes(uuid(3))) {
        return data({ id: `Receiver:${uuid(3)}`, status }, { id: `gasless:${uuid(3)}`, status });
      }
      if (path.includes(vault)) {
        return data(
          { vaultAddress: `intentwatch:${vault}`, state: status },
          { vaultAddress: vault, state: status },
        );
      }
      return { status: 404, body: '{}' };
    }),
  );
  const hook = await started(new TestReceiver());
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [
      {
        name: 's',
        intents: [hashOf(1)],
        quotes: [uuid(1)],
        gaslessJobs: [uuid(2), { id: uuid(3), endpoint: 'gateway' }],
        vaults: [{ address: vault, chainId: 8453 }],
        receivers: ['hook'],
      },
    ],
  });
  later(() => daemon.close());
  const subjects = [
    `intent:${hashOf(1)}`,
    `quote:${uuid(1)}`,
    `gasless:${uuid(2)}`,
    `gasless:gateway:${uuid(3)}`,
    `vault:8453:${vault}`,
  ];
  const events = await hook.until(
    (all) => new Set(all.map(({ data }) => data.subject.id)).size >= subjects.length,
  );
  expect(new Set(events.map(({ data }) => data.subject.id))).toEqual(new Set(subjects));
  expect(new Set(events.map(({ data }) => data.status))).toEqual(new Set(['pending']));
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  for (const kind of ['upstream', 'audit', 'route', 'receiver', 'intentwatch']) {
    expect(metrics).toContain(`intentwatch_records_reserved_total{kind="${kind}"} 1`);
  }
});
