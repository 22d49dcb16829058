import { createServer as createTcpServer, type Server } from 'node:net';
import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer } from 'smtp-server';
import { afterEach, describe, expect, test } from 'vitest';
import type { EmailReceiver } from '../../src/config/config.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { Notifier } from '../../src/notifiers/notifier.ts';
import { Secret } from '../../src/secret.ts';
import { freePort } from '../support/port.ts';

const HASH = `0x${'ab'.repeat(32)}`;

const EVENT: RenderedEvent = {
  id: 'evt_0123456789abcdef',
  type: 'intent.filled',
  timestamp: '2026-11-20T11:31:00.123Z',
  data: {
    subject: { kind: 'intent', id: `intent:${HASH}` },
    sequence: 3,
    epoch: 1,
    status: 'filled',
    previousStatus: 'pending',
    changes: ['status'],
    record: {
      sourceTx: {
        chainId: 8453,
        txHash: HASH,
        token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        amount: '1250000000',
      },
      destinationTx: {
        chainId: 10,
        txHash: HASH,
        token: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85',
        amount: '1249400000',
      },
    },
    upstreamUpdatedAt: null,
    detectionDelaySeconds: null,
    wallets: [],
    subscriptions: ['treasury'],
    metadata: { order: 'naïve <b>1042</b>' },
  },
};

type Mail = { parsed: ParsedMail; from: string; to: string[] };
type Refusal = { code: number; text: string };
type Rules = {
  connect?: Refusal;
  auth?: Refusal;
  sender?: Refusal;
  recipients?: Record<string, Refusal>;
  data?: Refusal;
  password?: string;
};
type MailServer = { url: string; mails: Mail[] };

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

function refuse(refusal: Refusal | undefined): Error | null {
  return refusal === undefined
    ? null
    : Object.assign(new Error(refusal.text), { responseCode: refusal.code });
}

async function startMailServer(rules: Rules = {}): Promise<MailServer> {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: rules.auth === undefined && rules.password === undefined,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    onConnect: (_, done) => done(refuse(rules.connect)),
    onAuth: ({ username, password }, _, done) => {
      const refused = refuse(rules.auth);
      if (refused === null && password === rules.password) done(null, { user: username });
      else done(refused ?? new Error(`wrong password ${password}`));
    },
    onMailFrom: (_, __, done) => done(refuse(rules.sender)),
    onRcptTo: ({ address }, _, done) => done(refuse(rules.recipients?.[address])),
    onData: (stream, { envelope }, done) => {
      simpleParser(stream).then((parsed) => {
        const refused = refuse(rules.data);
        const from = envelope.mailFrom === false ? '' : (envelope.mailFrom?.address ?? '');
        if (refused === null) mails.push({ parsed, from, to: envelope.rcptTo.map(({ address }) => address) });
        done(refused);
      }, done);
    },
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { url: `smtp://127.0.0.1:${portOf(server.server)}`, mails };
}

/** A server that accepts connections and never sends a line, or only the first. */
async function startSilentServer(onConnection: () => void = () => {}): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    closers.push(async () => socket.destroy());
    onConnection();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return `smtp://127.0.0.1:${portOf(server)}`;
}

function portOf(server: Pick<Server, 'address'>): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return address.port;
}

function notifierFor(url: string, changes: Partial<EmailReceiver> = {}): Notifier {
  const receiver: EmailReceiver = {
    name: 'oncall',
    type: 'email',
    to: ['ann@example.com', 'bob@example.com'],
    events: ['*'],
    timeoutMs: 120_000,
    retries: { delaysMs: [], jitter: 0 },
    concurrency: 1,
    filter: { wallets: null, chains: null, minAmount: null },
    rateLimit: null,
    ordering: 'none',
    disableAfterMs: 432_000_000,
    batching: { digest: null, quietHours: null },
    ...changes,
  };
  const smtp = { url: new Secret(url), from: 'Intentwatch <transfers@example.com>' };
  const notifier = createNotifier(receiver, { smtp, version: '1.2.3', eventUrl: null });
  closers.push(() => notifier.close());
  return notifier;
}

const NOW_MS = Date.parse('2026-11-20T11:32:00Z');

function deliver(notifier: Notifier, signal: AbortSignal = new AbortController().signal) {
  return notifier.deliver(EVENT, { signal, nowMs: NOW_MS });
}

describe('a mail', () => {
  test('goes to all addresses in one message and states the event, as text and as HTML', async () => {
    const server = await startMailServer();
    const result = await deliver(notifierFor(server.url));
    expect(result).toMatchObject({
      outcome: 'delivered',
      smtpCode: 250,
      httpStatus: null,
      retryAfterMs: null,
    });
    expect(server.mails).toHaveLength(1);
    const mail = server.mails[0];
    expect(mail).toMatchObject({ from: 'transfers@example.com', to: ['ann@example.com', 'bob@example.com'] });
    expect(mail?.parsed).toMatchObject({
      subject: 'Filled: 1,250.00 USDC, Base to Optimism',
      from: { text: '"Intentwatch" <transfers@example.com>' },
      to: { text: 'ann@example.com, bob@example.com' },
      date: new Date(NOW_MS),
    });
    expect(mail?.parsed.text).toMatch(/^Received: +1,249.40 USDC on Optimism$/m);
    expect(mail?.parsed.text).toMatch(/^order: +naïve <b>1042<\/b>$/m);
    expect(mail?.parsed.html).toContain('naïve &lt;b&gt;1042&lt;/b&gt;');
  });

  test('is marked as generated and names its event', async () => {
    const server = await startMailServer();
    await deliver(notifierFor(server.url));
    const headers = server.mails[0]?.parsed.headers;
    expect(headers?.get('auto-submitted')).toBe('auto-generated');
    expect(headers?.get('x-intentwatch-event')).toBe(EVENT.id);
  });

  test('has the same Message-ID when it is sent again, and refers to the first mail of its thread', async () => {
    const server = await startMailServer();
    const notifier = notifierFor(server.url);
    await deliver(notifier);
    await deliver(notifier);
    const [first, second] = server.mails.map(({ parsed }) => parsed);
    expect(first?.messageId).toBe('<evt_0123456789abcdef.oncall@intentwatch.example.com>');
    expect(second?.messageId).toBe(first?.messageId);
    expect(first?.references).toMatch(/^<thread\.[0-9a-f]{32}\.oncall@intentwatch\.example\.com>$/);
    expect(first?.inReplyTo).toBe(first?.references);
  });

  test('is sent with the login in the URL', async () => {
    const server = await startMailServer({ password: 'p@ss/word' });
    const url = server.url.replace('//', `//watch:${encodeURIComponent('p@ss/word')}@`);
    expect(await deliver(notifierFor(url))).toMatchObject({ outcome: 'delivered' });
    expect(server.mails).toHaveLength(1);
  });
});

describe('a mail server that refuses', () => {
  const GREYLISTED = { code: 451, text: '4.7.1 greylisted, try later' };
  const NO_SUCH_USER = { code: 550, text: '5.1.1 <bob@example.com> no such user' };

  test('for now: a later attempt may work', async () => {
    const server = await startMailServer({ data: GREYLISTED });
    expect(await deliver(notifierFor(server.url))).toMatchObject({
      outcome: 'failed',
      smtpCode: 451,
      reason: '451 4.7.1 greylisted, try later',
    });
  });

  test('for good: no later attempt is made, and its message is stored', async () => {
    const server = await startMailServer({ data: { code: 554, text: '5.7.1 classified as spam' } });
    expect(await deliver(notifierFor(server.url))).toMatchObject({
      outcome: 'rejected',
      smtpCode: 554,
      reason: '554 5.7.1 classified as spam',
      answer: '554 5.7.1 classified as spam',
    });
  });

  test('the sender for good', async () => {
    const server = await startMailServer({ sender: { code: 553, text: 'not your domain' } });
    expect(await deliver(notifierFor(server.url))).toMatchObject({ outcome: 'rejected', smtpCode: 553 });
  });

  test('every recipient for good, with no mail address in the reason', async () => {
    const server = await startMailServer({ recipients: { 'bob@example.com': NO_SUCH_USER } });
    const result = await deliver(notifierFor(server.url, { to: ['bob@example.com'] }));
    expect(result).toMatchObject({ outcome: 'rejected', smtpCode: 550 });
    expect(result.reason).toBe('550 5.1.1 <[address]> no such user');
  });

  test('one recipient for good: the mail is delivered to the others, and the refusal is reported', async () => {
    const server = await startMailServer({ recipients: { 'bob@example.com': NO_SUCH_USER } });
    const result = await deliver(notifierFor(server.url));
    expect(result).toMatchObject({ outcome: 'delivered', smtpCode: 250, refused: 1 });
    expect(result.reason).toBe('accepted for 1 of 2 recipients; refused: 550 5.1.1 <[address]> no such user');
    expect(server.mails[0]?.to).toEqual(['ann@example.com']);
  });

  test('one recipient for now: the attempt fails, so that no recipient misses the mail', async () => {
    const server = await startMailServer({ recipients: { 'bob@example.com': GREYLISTED } });
    const result = await deliver(notifierFor(server.url));
    expect(result).toMatchObject({ outcome: 'failed', smtpCode: 451 });
    expect(result.reason).toBe(
      'accepted for 1 of 2 recipients; refused for now: 451 4.7.1 greylisted, try later',
    );
  });

  test('one recipient for good and the other for now: a later attempt may work', async () => {
    const recipients = { 'ann@example.com': GREYLISTED, 'bob@example.com': NO_SUCH_USER };
    const server = await startMailServer({ recipients });
    const result = await deliver(notifierFor(server.url));
    expect(result).toMatchObject({ outcome: 'failed', smtpCode: 451, refused: 1 });
  });

  test('the login: that is ours to repair, so a later attempt may work, and no password comes back', async () => {
    const server = await startMailServer({ password: 'right' });
    const result = await deliver(notifierFor(server.url.replace('//', '//watch:hunter2@')));
    expect(result).toMatchObject({ outcome: 'failed', smtpCode: 535 });
    expect(JSON.stringify(result)).toContain('wrong password [secret]');
    expect(JSON.stringify(result)).not.toContain('hunter2');
  });

  test('the connection, even for good: the mail itself may be fine', async () => {
    const server = await startMailServer({ connect: { code: 554, text: 'no service for you' } });
    expect(await deliver(notifierFor(server.url))).toMatchObject({ outcome: 'failed', smtpCode: 554 });
  });
});

describe('a mail server that hangs or is not there', () => {
  test('with no listener: a failure', async () => {
    const result = await deliver(notifierFor(`smtp://127.0.0.1:${await freePort()}`));
    expect(result).toMatchObject({ outcome: 'failed', smtpCode: null });
    expect(result.reason).toContain('ECONNREFUSED');
  });

  test('without a greeting: the attempt ends at its timeout', async () => {
    const result = await deliver(notifierFor(await startSilentServer(), { timeoutMs: 200 }));
    expect(result).toMatchObject({ outcome: 'failed', smtpCode: null, reason: 'not sent within 200 ms' });
  });

  test('while the attempt is cut off: an AbortError', async () => {
    const controller = new AbortController();
    const url = await startSilentServer(() => controller.abort('shutdown'));
    const attempt = deliver(notifierFor(url, { timeoutMs: 600_000 }), controller.signal);
    await expect(attempt).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('with a password and without TLS, elsewhere than on this machine: the password is not sent', async () => {
    const server = await startMailServer({ password: 'hunter2' });
    // 0.0.0.0 leads to this machine too, but is not a loopback address.
    const url = server.url.replace('//127.0.0.1', '//watch:hunter2@0.0.0.0');
    const result = await deliver(notifierFor(url));
    expect(result).toMatchObject({ outcome: 'failed' });
    expect(result.reason).toContain('STARTTLS');
    expect(await deliver(notifierFor(`${url}/?ignoreTLS=true`))).toMatchObject({ outcome: 'delivered' });
    expect(server.mails).toHaveLength(1);
  });
});
