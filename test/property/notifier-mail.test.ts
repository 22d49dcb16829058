import fc from 'fast-check';
import { simpleParser } from 'mailparser';
import { createTransport, type SendMailOptions } from 'nodemailer';
import { describe, expect, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import {
  makeDigestMessage,
  makeDigestNotice,
  makeMessage,
  renderDigestHtml,
  renderDigestText,
  renderHtml,
  renderText,
} from '../../src/notifiers/email/message.ts';
import { makeNotice } from '../../src/notifiers/notice/notice.ts';

const ATTACKS = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '&lt;b&gt; &#60;b&#62;',
  'a\r\nBcc: eve@example.com\r\n\r\nbody',
  '\nSubject: other',
  '=?utf-8?q?=0D=0ABcc:_eve@example.com?=',
  '\u202eevil\u2066',
  '\u2028\u2029\u0085\u0000\u001b[2J',
  '\ud800',
  'javascript:alert(1)',
];

const text = fc.oneof(
  fc.constantFrom(...ATTACKS),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.tuple(fc.string(), fc.constantFrom(...ATTACKS), fc.string()).map((parts) => parts.join('')),
);
const { json } = fc.letrec<{ json: JsonObject[string] }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    text,
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(text, tie('json'), { maxKeys: 3 }),
  ),
}));
const end = fc.oneof(
  json,
  fc.record(
    { chainId: fc.oneof(text, fc.constant(8453)), token: text, amount: text, txHash: text },
    { requiredKeys: [] },
  ),
);
const record: fc.Arbitrary<JsonObject> = fc.record(
  {
    sourceTx: end,
    destinationTx: end,
    steps: fc.oneof(json, fc.array(fc.record({ from: end, to: end, transactions: json }), { maxLength: 2 })),
    amount: json,
    deadline: json,
    intentHashes: json,
    error: json,
    extra: json,
  },
  { requiredKeys: [] },
);
const events: fc.Arbitrary<RenderedEvent> = fc.record({
  id: fc.constant('evt_0123'),
  type: text.map((word) => `intent.${word}`),
  timestamp: fc.oneof(text, fc.constant('2026-11-20T11:31:00.123Z')),
  data: fc.record({
    subject: fc.record({ kind: fc.oneof(text, fc.constantFrom('intent', 'vault', 'upstream')), id: text }),
    sequence: fc.nat(),
    epoch: fc.constant(1),
    status: fc.option(text),
    previousStatus: fc.option(text),
    changes: fc.array(text, { maxLength: 3 }),
    record,
    upstreamUpdatedAt: fc.option(fc.integer()),
    detectionDelaySeconds: fc.option(fc.nat()),
    elapsedSeconds: fc.nat(),
    wallets: fc.array(text, { maxLength: 2 }),
    subscriptions: fc.array(text, { maxLength: 2 }),
    metadata: fc.dictionary(text, text, { maxKeys: 3 }),
  }),
});
const digests = fc.array(events, { minLength: 2, maxLength: 5 });

function withoutOwnTags(html: string): string {
  const attribute = ' (?:style|lang|charset|name|content|role|cellpadding|cellspacing|colspan)="[^"<>]*"';
  const link = '<a href="https:\\/\\/[a-z.-]+\\/[A-Za-z0-9/#]+" style="[^"<>]*">';
  const own = `<!DOCTYPE html>|<\\/?(?:html|head|meta|title|body|table|tr|td|a|b|br|span)(?:${attribute})*>|${link}`;
  return html.replace(new RegExp(own, 'g'), '');
}

test('no text of the upstream becomes markup', () => {
  fc.assert(
    fc.property(events, (event) => {
      expect(withoutOwnTags(renderHtml(makeNotice(event)))).not.toMatch(/[<>"']/);
    }),
    { numRuns: 500 },
  );
});

test('no text of the upstream becomes markup in a digest', () => {
  fc.assert(
    fc.property(digests, (events) => {
      const html = renderDigestHtml(makeDigestNotice(events, COMMON_NAMES));
      expect(withoutOwnTags(html)).not.toMatch(/[<>"']/);
    }),
    { numRuns: 200 },
  );
});

test('no text of the upstream adds a line to a digest or reorders one', () => {
  fc.assert(
    fc.property(digests, (events) => {
      const notice = makeDigestNotice(events, COMMON_NAMES);
      expect(notice.title.length).toBeLessThanOrEqual(150);
      const rows = notice.groups.flatMap((group) => group.rows);
      const lines = renderDigestText(notice).split('\n');
      // Title, blank, summary; each group after a blank, with a heading and a line per event; the end of the last line.
      expect(lines).toHaveLength(3 + notice.groups.length * 2 + events.length + rows.length + 1);
      for (const line of lines) {
        expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
      }
    }),
    { numRuns: 200 },
  );
});

test('no text of the upstream adds a line or reorders one', () => {
  fc.assert(
    fc.property(events, (event) => {
      const notice = makeNotice(event);
      const rows = notice.sections.flat();
      expect(notice.title.length).toBeLessThanOrEqual(150);
      const lines = renderText(notice).split('\n');
      // Title, blank, summary; each section after a blank; the end of the last line.
      expect(lines).toHaveLength(3 + notice.sections.length + rows.length + 1);
      for (const line of lines) {
        expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
      }
    }),
    { numRuns: 500 },
  );
});

describe('no text of the upstream adds a header or a recipient', () => {
  const transport = createTransport({ streamTransport: true, buffer: true });
  const envelope = {
    receiverName: 'oncall',
    from: 'watch@example.com',
    to: ['a@example.com'],
    remaining: [],
    nowMs: 0,
    directory: COMMON_NAMES,
  };
  const plain = ['date', 'from', 'to', 'subject', 'message-id', 'mime-version', 'content-type'];
  const ours = ['auto-submitted', 'x-intentwatch-event'];
  const thread = ['in-reply-to', 'references'];

  async function sent(mail: SendMailOptions) {
    const { message, envelope } = await transport.sendMail(mail);
    const parsed = await simpleParser(Buffer.isBuffer(message) ? message : '');
    return { to: envelope.to, parsed, headers: [...new Set(parsed.headers.keys())].sort() };
  }

  test('of a mail', async () => {
    await fc.assert(
      fc.asyncProperty(events, async (event) => {
        const { to, parsed, headers } = await sent(makeMessage(event, envelope));
        expect(headers).toEqual([...plain, ...ours, ...thread].sort());
        expect(to).toEqual(['a@example.com']);
        expect(parsed.messageId).toBe('<evt_0123.oncall@intentwatch.example.com>');
        expect(parsed.subject).toBe(makeNotice(event).title.replaceAll('=?', '= ?'));
      }),
      { numRuns: 100 },
    );
  });

  test('of a digest', async () => {
    await fc.assert(
      fc.asyncProperty(digests, async (events) => {
        const { to, parsed, headers } = await sent(makeDigestMessage({ id: 'b1', events }, envelope));
        const subjects = new Set(events.map(({ data }) => data.subject.id));
        expect(headers).toEqual([...plain, ...ours, ...(subjects.size === 1 ? thread : [])].sort());
        expect(to).toEqual(['a@example.com']);
        expect(parsed.messageId).toBe('<digest.b1.oncall@intentwatch.example.com>');
        expect(parsed.headers.get('x-intentwatch-event')).toEqual(events.map(() => 'evt_0123'));
        expect(parsed.subject).toBe(makeDigestNotice(events, COMMON_NAMES).title.replaceAll('=?', '= ?'));
      }),
      { numRuns: 50 },
    );
  });
});
