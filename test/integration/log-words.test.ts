import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { rpcServer } from '../support/json-rpc-server.ts';
import { Mailbox } from '../support/mailbox.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { ShippedDaemon } from '../support/shipped-daemon.ts';

const TOKEN = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl';

/** Statuses that no log line may show, by the part of them that would reveal them. */
const STATUSES = {
  'bob@example.com': /bob/i,
  'refund for carol@example.com, quickly': /carol/i,
  whsec_ABCDEFGHIJKLMNOPQRSTUVWXYZ: /abcdefghij/i,
  sk_live_QWERTYUIOP: /qwertyuiop/i,
  [TOKEN]: /eyJ/i,
  'pass-phrase-77': /phrase/i,
} as const;

test('texts of the upstream that are mail addresses or resemble secrets are in events, and in no log line', async () => {
  const statuses = new Map(Object.keys(STATUSES).map((status, index) => [hashOf(index + 1), status]));
  const refused = hashOf(100);
  const upstream = new ScriptedUpstream(({ query }) => {
    const hash = query.intentHash ?? '';
    if (hash === refused) {
      const problem = {
        type: 'https://x/errors/internal',
        title: 'mail dave@example.com',
        status: 500,
        code: 'internal',
      };
      const body = JSON.stringify({ ...problem, detail: 'log in with sk_live_ASDFGHJKL' });
      return { status: 500, body, headers: { 'content-type': 'application/problem+json' } };
    }
    return {
      records: [
        intentRecord(hash, statuses.get(hash) ?? 'pending', 1_763_638_259, { 'erin@example.com': 1 }),
      ],
    };
  });
  await upstream.start();
  onTestFinished(() => upstream.close());
  const hook = new Hook();
  await hook.start();
  onTestFinished(() => hook.close());
  const daemon = await ShippedDaemon.of(
    {
      baseUrl: upstream.url,
      receiver: { url: hook.url },
      subscription: { intents: [...statuses.keys(), hashOf(99), refused] },
    },
    onTestFinished,
  );
  await daemon.start();
  await hook.until((came) => came.length >= statuses.size + 1);
  const reported = hook.came.map(({ event }) => event.data.status);
  expect(reported).toEqual(expect.arrayContaining([...Object.keys(STATUSES), 'pending']));
  const lines = (msg: string): string[] => daemon.lines.filter((line) => line.includes(`"msg":"${msg}"`));
  await eventually('all is logged', () => {
    const isEach = ['event.committed', 'delivery.attempted'].every(
      (msg) => lines(msg).length > statuses.size,
    );
    return isEach && lines('poll.failed').length > 0;
  });
  const output = daemon.lines.join('\n');
  for (const [status, trace] of Object.entries(STATUSES)) expect(output, status).not.toMatch(trace);
  expect(output).not.toMatch(/dave|erin|ASDFGHJKL/);
  expect(output).toContain('"status":"[address]"');
  expect(output).toContain('"eventType":"intent.[secret]"');
  expect(output).toContain('"eventType":"intent.pending"');
});

async function refusing(words: string): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.writeHead(500).end(words));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test('texts of receivers, mail servers and RPC endpoints that resemble secrets are in no log line', async () => {
  const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
  const payment = { chainId: 8453, txHash: hashOf(7), token: usdc, amount: '1000' };
  let status = 'pending';
  const upstream = new ScriptedUpstream(({ query }) => ({
    records: [
      status === 'filled'
        ? intentRecord(query.intentHash ?? '', status, 1_763_638_300, { destinationTx: payment })
        : intentRecord(query.intentHash ?? '', status, 1_763_638_259),
    ],
  }));
  await upstream.start();
  onTestFinished(() => upstream.close());
  const mailbox = new Mailbox();
  mailbox.refuse = () => ({ code: 550, text: '5.1.1 grace@example.com is no user, sk_live_MAILMAILMAIL' });
  await mailbox.start();
  onTestFinished(() => mailbox.close());
  const message = 'mail heidi@example.com for sk_live_RPCRPCRPCRPC';
  const node = await rpcServer(() => ({ error: { code: -32_000, message } }));
  onTestFinished(() => node.close());
  const url = await refusing('write to frank@example.com with sk_live_HOOKHOOKHOOK');
  const daemon = await ShippedDaemon.of(
    {
      baseUrl: upstream.url,
      receiver: { url },
      subscription: { intents: [hashOf(1)], receivers: ['backend', 'mail'] },
      more: {
        smtp: { url: mailbox.url, from: 'intentwatch@example.com' },
        chains: { 8453: { rpc: [{ name: 'node', url: `http://127.0.0.1:${node.port}/` }] } },
      },
      receivers: [{ name: 'mail', type: 'email', to: ['ivan@example.com'] }],
    },
    onTestFinished,
  );
  await daemon.start();
  const reported = (msg: string, words: RegExp): boolean =>
    daemon.lines.some((line) => line.includes(`"msg":"${msg}"`) && words.test(line));
  await eventually('both receivers have refused', () => {
    return (
      reported('delivery.attempted', /"httpStatus":500/) && reported('delivery.attempted', /"smtpCode":550/)
    );
  });
  status = 'filled';
  await eventually('the endpoint has refused', () => reported('rpc.failed', /error -32000/));
  const output = daemon.lines.join('\n');
  expect(output).not.toMatch(/frank|grace|heidi|ivan|HOOKHOOK|MAILMAIL|RPCRPC/);
  expect(output).toMatch(/is no user/);
  expect(output).toContain('error -32000, mail [address] for [secret]');
});
