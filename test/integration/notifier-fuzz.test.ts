import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import { Secret } from '../../src/secret.ts';
import { SEED } from '../support/fast-check-seed.ts';
import { opening } from '../support/opening.ts';
import { RawServer } from '../support/raw-server.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { WEBHOOK_SECRET, webhookReceiver } from '../support/webhook-receiver.ts';

/** The number of random answers; `npm run fuzz` makes more. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 300);
const AT_ONCE = 20;
/** Many of the answers never end, and each of those takes the attempt's whole timeout. */
const TIMEOUT_MS = 180_000 + 300 * RUNS;

const { started } = opening();

const TOKEN = 'T0k3n+of/this=hook&rather long';
const HEADER = 'Bearer 4bcdefghijklmnopqrstuvwx';
const SECRETS = [TOKEN, HEADER, WEBHOOK_SECRET];

/** A secret that a server may repeat, and its spelling. */
const echo = fc.tuple(fc.constantFrom(...SECRETS), fc.nat(6), fc.nat(80)).map(([secret, spelling, end]) => {
  const spelled = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/'),
    secret.replaceAll('&', '&amp;').replaceAll('=', '&#61;').replaceAll('/', '&#x2f;'),
    Buffer.from(secret).toString('base64'),
    Buffer.from(`x${secret}`).toString('base64url'),
    secret.toUpperCase(),
  ][spelling];
  return String(spelled).slice(0, 12 + end);
});
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ maxLength: 2_000 }),
  fc.constantFrom('\r\n', '\r\n\r\n', '0', ' ', ':', '\0', 'chunked', '100', '{"error":"', '<p>'),
  echo,
);
const texts = fc.array(text, { maxLength: 12 }).map((parts) => parts.join(''));
const statusLine = fc.oneof(
  fc.integer({ min: 100, max: 999 }).map((status) => `HTTP/1.1 ${status} Reason\r\n`),
  texts.map((reason) => `HTTP/1.1 200 ${reason}\r\n`),
  texts,
);
const header = fc.oneof(
  fc.constantFrom(
    'content-length: 5\r\n',
    'content-length: -1\r\n',
    'transfer-encoding: chunked\r\n',
    'retry-after: 1e9\r\n',
    'connection: close\r\n',
    'location: http://127.0.0.1:1/\r\n',
  ),
  fc.tuple(texts, texts).map(([name, value]) => `${name}: ${value}\r\n`),
);
const answer = fc
  .tuple(statusLine, fc.array(header, { maxLength: 8 }), texts, fc.constantFrom('end', 'reset', 'stay'))
  .map(([start, headers, body, end]) => ({ bytes: `${start}${headers.join('')}\r\n${body}`, end }));

/** Finds any 14 consecutive characters of a secret. */
function shows(text: string): string | null {
  for (const secret of SECRETS) {
    for (const spelled of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]) {
      for (let at = 0; at + 14 <= spelled.length; at += 1) {
        if (text.toLowerCase().includes(spelled.slice(at, at + 14).toLowerCase())) return spelled;
      }
    }
  }
  return null;
}

test(
  `${RUNS} made-up answers (seed ${SEED}): each attempt ends with a result, and none shows a secret`,
  async () => {
    const server = await started(
      new RawServer((socket) =>
        socket.on('data', (chunk) => {
          const number = /[?&]n=(\d+)/.exec(chunk.toString('latin1'))?.[1];
          const given = answers[Number(number)];
          if (given === undefined) return;
          socket.write(Buffer.from(given.bytes, 'utf8'), () => {
            if (given.end === 'end') socket.end();
            if (given.end === 'reset') socket.resetAndDestroy();
          });
        }),
      ),
    );
    const answers = fc.sample(answer, { seed: SEED, numRuns: RUNS });
    const deliver = async (number: number): Promise<void> => {
      const url = `http://127.0.0.1:${server.port}/${encodeURIComponent(TOKEN)}?n=${number}`;
      const notifier = createNotifier(
        webhookReceiver(url, { timeoutMs: 300, headers: { authorization: new Secret(HEADER) } }),
        { smtp: null, version: '0', eventUrl: null },
      );
      try {
        const result = await notifier.deliver(renderedEvent(), {
          signal: new AbortController().signal,
          nowMs: Date.now(),
        });
        expect(['delivered', 'failed', 'rejected']).toContain(result.outcome);
        const text = `${result.reason} ${result.answer}`;
        expect(shows(text), `${text}\nshows a secret, of ${JSON.stringify(answers[number])}`).toBeNull();
        expect(Buffer.byteLength(result.answer)).toBeLessThanOrEqual(1_024);
        expect(text).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
      } finally {
        await notifier.close();
      }
    };
    for (let at = 0; at < RUNS; at += AT_ONCE) {
      await Promise.all(
        Array.from({ length: Math.min(AT_ONCE, RUNS - at) }, (_, index) => deliver(at + index)),
      );
    }
  },
  TIMEOUT_MS,
);
