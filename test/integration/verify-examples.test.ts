import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatKeyPair } from '../../src/config/fields/signing-secret.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { AttemptResult } from '../../src/notifiers/notifier.ts';
import { Secret } from '../../src/secret.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { freePort } from '../support/port.ts';
import { WEBHOOK_SECRET, webhookReceiver } from '../support/webhook-receiver.ts';

const root = resolve(import.meta.dirname, '../..');
const examples = resolve(root, 'examples/verify-webhook');
const buildFolder = mkdtempSync(join(tmpdir(), 'intentwatch-verify-'));
afterAll(() => rmSync(buildFolder, { recursive: true, force: true }));

const SECRET = WEBHOOK_SECRET;
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
const PAIR = formatKeyPair(Buffer.alloc(32, 7));
const OTHER_PAIR = formatKeyPair(Buffer.alloc(32, 9));
const SIX_MINUTES_MS = 6 * 60_000;

const EVENT: RenderedEvent = {
  id: `evt_${'0123456789'.repeat(4)}`,
  type: 'intent.filled',
  timestamp: '2026-11-20T11:31:00.123Z',
  data: {
    subject: { kind: 'intent', id: `intent:0x${'ab'.repeat(32)}` },
    sequence: 3,
    epoch: 1,
    status: 'filled',
    previousStatus: 'pending',
    changes: ['status'],
    record: { id: `intent:0x${'ab'.repeat(32)}`, type: 'intent', status: 'filled', note: 'naïve ✓ "quoted"' },
    upstreamUpdatedAt: 1_763_638_259,
    detectionDelaySeconds: 0.9,
    wallets: [],
    subscriptions: ['treasury'],
    metadata: { order: '1042' },
  },
};

/** Keys of the signed requests, and the environment of the program that verifies them. */
type Keys = { secret: string; otherSecret: string; env: Record<string, string> };

const HMAC: Keys = { secret: SECRET, otherSecret: OTHER_SECRET, env: { WEBHOOK_SECRET: SECRET } };
const ED25519: Keys = {
  secret: PAIR.secret,
  otherSecret: OTHER_PAIR.secret,
  env: { WEBHOOK_PUBLIC_KEY: PAIR.publicKey },
};

/** A program of the examples: `needed` is true where it can run here, `build` comes before `command`. */
type Example = {
  keys: Keys;
  name: string;
  needed: ReturnType<typeof needs>;
  build?: string[];
  command: string[];
};

const binary = join(buildFolder, 'verify');
const EXAMPLES: readonly Example[] = [
  {
    name: 'TypeScript with a library',
    keys: HMAC,
    needed: needs(),
    command: [process.execPath, 'standard-webhooks.ts'],
  },
  {
    name: 'TypeScript',
    keys: HMAC,
    needed: needs(),
    command: [process.execPath, 'verify.ts'],
  },
  {
    name: 'TypeScript for ed25519',
    keys: ED25519,
    needed: needs(),
    command: [process.execPath, 'verify-ed25519.ts'],
  },
  {
    name: 'Python',
    keys: HMAC,
    needed: needs(PARTS.python),
    command: ['python3', 'verify.py'],
  },
  {
    name: 'Go',
    keys: HMAC,
    needed: needs(PARTS.go),
    build: ['go', 'build', '-o', binary, 'verify.go'],
    command: [binary],
  },
];

type Program = { url: string; end: () => Promise<void> };

async function start(
  { command: [file = '', ...args], keys }: Example,
  env: Record<string, string> = keys.env,
): Promise<Program> {
  const child: ChildProcess = spawn(file, args, {
    cwd: examples,
    env: { ...process.env, ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<void>((done) => child.once('close', () => done()));
  let output = '';
  const port = await new Promise<string>((found, fail) => {
    const listen = (chunk: Buffer): void => {
      output += chunk.toString();
      const match = /listening.*\b(\d{4,5})\b/.exec(output);
      if (match?.[1] !== undefined) found(match[1]);
    };
    child.stdout?.on('data', listen);
    child.stderr?.on('data', listen);
    child.once('error', fail);
    void ended.then(() => fail(new Error(`the example ended before it listened: ${output}`)));
  });
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  return { url: `http://127.0.0.1:${port}/hooks/transfers`, end };
}

async function deliver(url: string, secrets: string[], nowMs = Date.now()): Promise<AttemptResult> {
  const receiver = webhookReceiver(url, { secrets: secrets.map((secret) => new Secret(secret)) });
  const notifier = createNotifier(receiver, { smtp: null, version: '0.0.0', eventUrl: null });
  try {
    return await notifier.deliver(EVENT, { signal: new AbortController().signal, nowMs });
  } finally {
    await notifier.close();
  }
}

type Captured = { headers: Record<string, string>; body: Buffer };

/** The request that the daemon sends, byte by byte. */
async function capture(secret: string): Promise<Captured> {
  const { promise, resolve: found } = Promise.withResolvers<Captured>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const names = ['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature'];
    const headers = Object.fromEntries(names.map((name) => [name, String(request.headers[name])]));
    found({ headers, body: Buffer.concat(chunks) });
    response.writeHead(204).end();
  });
  const port = await freePort();
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
  await deliver(`http://127.0.0.1:${port}/`, [secret]);
  await new Promise((closed) => server.close(closed));
  return promise;
}

async function post(url: string, { headers, body }: Captured): Promise<number> {
  const response = await fetch(url, { method: 'POST', headers, body: new Uint8Array(body) });
  await response.arrayBuffer();
  return response.status;
}

function versionOf({ headers }: Captured): string {
  return headers['webhook-signature']?.split(',')[0] ?? '';
}

/** One change each to a request that is accepted without it. */
const TAMPERINGS: readonly [what: string, change: (request: Captured) => void][] = [
  ['another amount in the body', (it) => it.body.write('9', it.body.indexOf('1042'))],
  [
    'the same JSON with other spaces',
    (it) => {
      it.body = Buffer.from(JSON.stringify(JSON.parse(it.body.toString()), null, 1));
    },
  ],
  ['a body that is cut off', (it) => (it.body = it.body.subarray(0, -1))],
  ['no body', (it) => (it.body = Buffer.alloc(0))],
  ['another id', (it) => (it.headers['webhook-id'] += '0')],
  [
    'another timestamp',
    (it) => (it.headers['webhook-timestamp'] = String(Number(it.headers['webhook-timestamp']) + 1)),
  ],
  ['a timestamp that is no number', (it) => (it.headers['webhook-timestamp'] = 'now')],
  ['a timestamp with 400 digits', (it) => (it.headers['webhook-timestamp'] = '1'.repeat(400))],
  ['no id', (it) => delete it.headers['webhook-id']],
  ['no timestamp', (it) => delete it.headers['webhook-timestamp']],
  ['no signature', (it) => delete it.headers['webhook-signature']],
  ['an empty signature', (it) => (it.headers['webhook-signature'] = `${versionOf(it)},`)],
  ['half a signature', (it) => (it.headers['webhook-signature'] = `${versionOf(it)},AAAA`)],
  [
    'the signature under another version',
    (it) => {
      const [, base64] = it.headers['webhook-signature']?.split(',') ?? [];
      it.headers['webhook-signature'] = `${versionOf(it) === 'v1' ? 'v1a' : 'v1'},${base64}`;
    },
  ],
];

for (const example of EXAMPLES)
  describe.skipIf(example.needed.skip)(`the ${example.name} example${example.needed.note}`, () => {
    const { secret, otherSecret } = example.keys;

    let program: Program;
    let request: Captured;
    beforeAll(async () => {
      const [tool = '', ...args] = example.build ?? [];
      if (tool !== '') {
        const built = spawnSync(tool, args, { cwd: examples, encoding: 'utf8' });
        if (built.status !== 0) throw new Error(`${tool} ${args.join(' ')}: ${built.stderr}`);
      }
      program = await start(example);
      request = await capture(secret);
    });
    afterAll(() => program.end());

    test('accepts an event signed by the daemon', async () => {
      expect(await deliver(program.url, [secret])).toMatchObject({ outcome: 'delivered', httpStatus: 204 });
    });

    test.each([
      ['new', [otherSecret, secret]],
      ['old', [secret, otherSecret]],
      ['of the other kind', [secret === SECRET ? PAIR.secret : SECRET, secret]],
    ])('accepts two signatures of which its own is the %s one', async (_which, secrets) => {
      expect(await deliver(program.url, secrets)).toMatchObject({ httpStatus: 204 });
    });

    test('refuses an event signed with another secret', async () => {
      expect(await deliver(program.url, [otherSecret])).toMatchObject({ outcome: 'failed', httpStatus: 401 });
    });

    test.each([
      ['old', -SIX_MINUTES_MS],
      ['in the future', SIX_MINUTES_MS],
    ])('refuses an event six minutes %s', async (_when, offsetMs) => {
      expect(await deliver(program.url, [secret], Date.now() + offsetMs)).toMatchObject({ httpStatus: 401 });
    });

    test.each(TAMPERINGS)('refuses %s', async (_what, change) => {
      expect(await post(program.url, request)).toBe(204);
      const tampered = { headers: { ...request.headers }, body: Buffer.from(request.body) };
      change(tampered);
      expect(await post(program.url, tampered)).toBe(401);
    });

    test('refuses everything when its own secret is empty', async () => {
      const empty = await start(example, { WEBHOOK_SECRET: 'whsec_', WEBHOOK_PUBLIC_KEY: 'whpk_' });
      const { headers, body } = request;
      const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
      const signature = createHmac('sha256', '').update(signed).update(body).digest('base64');
      try {
        const forged = { headers: { ...headers, 'webhook-signature': `v1,${signature}` }, body };
        expect(await post(empty.url, forged)).toBe(401);
      } finally {
        await empty.end();
      }
    });
  });
