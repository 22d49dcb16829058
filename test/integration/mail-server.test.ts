import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ParsedMail, simpleParser } from 'mailparser';
import { expect, test } from 'vitest';
import type { EmailReceiver } from '../../src/config/config.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import { Secret } from '../../src/secret.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { freePort } from '../support/port.ts';

const open = opening();

/** An SMTP server of another author, in another language. */
const python = PARTS.pythonWithSmtp.place;
const PYTHON = needs(PARTS.pythonWithSmtp);

async function startServer(): Promise<{ url: string; mails: () => Promise<ParsedMail[]> }> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-mail-'));
  const port = await freePort();
  const maildir = join(folder, 'mail');
  const args = ['-n', '-l', `127.0.0.1:${port}`, '-c', 'aiosmtpd.handlers.Mailbox', maildir];
  const server = spawn(python ?? 'python3', ['-m', 'aiosmtpd', ...args], { stdio: 'ignore' });
  open.later(() => rm(folder, { recursive: true, maxRetries: 5 }));
  open.later(() => ended(server));
  await eventually('the server listens', () => answers(port));
  const mails = async () => {
    const names = await readdir(join(maildir, 'new'));
    const texts = await Promise.all(names.map((name) => readFile(join(maildir, 'new', name))));
    return Promise.all(texts.map((text) => simpleParser(text)));
  };
  return { url: `smtp://127.0.0.1:${port}`, mails };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('data', () => end(true));
    socket.once('error', () => end(false));
  });
}

async function ended(child: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill();
  await exited;
}

function eventOf(number: number): RenderedEvent {
  const hash = `0x${String(number).repeat(64)}`;
  return {
    id: `evt_${String(number).repeat(40)}`,
    type: 'intent.filled',
    timestamp: `2026-11-20T11:31:0${number}.000Z`,
    data: {
      subject: { kind: 'intent', id: `intent:${hash}` },
      sequence: 2,
      epoch: 1,
      status: 'filled',
      previousStatus: 'pending',
      changes: ['status'],
      record: {
        sourceTx: {
          chainId: 8453,
          txHash: hash,
          token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
          amount: `${number}250000000`,
        },
        destinationTx: { chainId: 10, txHash: hash, token: '0xunknown', amount: '7' },
      },
      elapsedSeconds: 23,
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
      wallets: [],
      subscriptions: ['treasury'],
      metadata: { für: 'naïve <b>1042</b> =?utf-8?q?x?=' },
    },
  };
}

const RECEIVER: EmailReceiver = {
  name: 'oncall',
  type: 'email',
  to: ['a@example.com', 'b@example.com'],
  events: ['*'],
  filter: { wallets: null, chains: null, minAmount: null },
  timeoutMs: 30_000,
  retries: { delaysMs: [], jitter: 0 },
  concurrency: 1,
  rateLimit: null,
  ordering: 'none',
  disableAfterMs: 1_000,
  batching: { digest: null, quietHours: null },
};

test.skipIf(PYTHON.skip)(
  `an SMTP server that is no JavaScript library accepts a mail and a digest, and stores both${PYTHON.note}`,
  async () => {
    const server = await startServer();
    const smtp = { url: new Secret(server.url), from: 'Intentwatch <transfers@example.com>' };
    const notifier = createNotifier(RECEIVER, { smtp, version: '1.2.3', eventUrl: null });
    open.later(() => notifier.close());
    const options = { signal: new AbortController().signal, nowMs: Date.parse('2026-11-20T11:32:00Z') };
    const one = await notifier.deliver(eventOf(1), options);
    const several = await notifier.deliverDigest?.({ id: 'b1', events: [eventOf(1), eventOf(2)] }, options);
    expect([one, several]).toMatchObject([
      { outcome: 'delivered', smtpCode: 250 },
      { outcome: 'delivered', smtpCode: 250 },
    ]);
    const mails = (await server.mails()).sort((a, b) => (a.subject ?? '').localeCompare(b.subject ?? ''));
    expect(mails.map(({ subject }) => subject)).toEqual([
      'Digest: 2 filled',
      'Filled: 1,250.00 USDC, Base to Optimism, 23 s',
    ]);
    const [digest, mail] = mails;
    expect(mail?.text).toMatch(/^Took: +23 s$/m);
    expect(mail?.text).toMatch(/^Received: +7 base units of 0xunknown on Optimism$/m);
    expect(digest?.text).toContain('\n2,250.00 USDC, Base to Optimism\n  11:31:02  Filled, 23 s\n');
    for (const { text, html } of mails) {
      expect(text).toMatch(/^ *für: +naïve <b>1042<\/b> =\?utf-8\?q\?x\?=$/m);
      expect(html).toContain('naïve &lt;b&gt;1042&lt;/b&gt; =?utf-8?q?x?=');
    }
    expect(digest?.messageId).toBe('<digest.b1.oncall@intentwatch.example.com>');
  },
);
