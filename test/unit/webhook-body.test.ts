import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { RENDERED_EVENT } from '../../src/domain/events/event-schema.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { MAX_WEBHOOK_BYTES } from '../../src/domain/limits.ts';
import { renderBody } from '../../src/notifiers/webhook/webhook.ts';

const RECORD_URL = 'https://watch.example.com/api/v1/events/evt_1?receiver=backend';

function eventWith(record: JsonObject, more: Partial<RenderedEvent['data']> = {}): RenderedEvent {
  return {
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
      record,
      upstreamUpdatedAt: 1_763_638_259,
      detectionDelaySeconds: 0.9,
      wallets: [],
      subscriptions: ['treasury'],
      metadata: { order: '1042' },
      ...more,
    },
  };
}

function standard(event: RenderedEvent, recordUrl: string | null = RECORD_URL): Buffer {
  return renderBody(event, { format: 'standard', recordUrl });
}

function read(body: Buffer): RenderedEvent {
  return JSON.parse(body.toString('utf8'));
}

const CORE: JsonObject = { id: 'intent:0xab', type: 'intent', status: 'filled', updatedAt: 1_763_638_259 };

describe('an event that is larger than 20 kB', () => {
  const event = eventWith({
    ...CORE,
    steps: Array.from({ length: 40 }, (_, index) => ({
      type: 'SWAP',
      intentHash: `0x${index}`.padEnd(66, 'a'),
    })),
    note: 'é'.repeat(9_000),
    txHash: '0xcd',
  });

  test('loses the largest members of its record first, and states it with a link', () => {
    const body = standard(event);
    expect(body.length).toBeLessThan(20_000);
    const { data } = read(body);
    expect(data).toMatchObject({ recordTruncated: true, recordUrl: RECORD_URL, metadata: { order: '1042' } });
    const { note, ...rest } = event.data.record;
    expect(note).toBeDefined();
    expect(data.record).toEqual(rest);
    expect(RENDERED_EVENT.safeParse(read(body)).error).toBeUndefined();
  });

  test('states it without a link where there is no API', () => {
    const { data } = read(standard(event, null));
    expect(data.recordTruncated).toBe(true);
    expect(data).not.toHaveProperty('recordUrl');
  });

  test('is cut the same way at every attempt, for any order of its members', () => {
    const reversed = Object.fromEntries(Object.entries(event.data.record).reverse());
    expect(standard(eventWith(reversed)).equals(standard(event))).toBe(true);
  });

  test('retains its identity when everything else has to go', () => {
    const members = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, index) => [`member${index}`, index]),
    );
    const { data } = read(standard(eventWith({ ...CORE, ...members }, { changes: Object.keys(members) })));
    expect(data.record).toMatchObject(CORE);
    expect(data.changes[0]).toBe('member0');
  });

  test('loses as many small members as necessary, and hardly more', () => {
    const members = Object.fromEntries(
      Array.from({ length: 2_500 }, (_, index) => [`member${index}`, index]),
    );
    const body = standard(eventWith({ ...CORE, ...members }));
    expect(body.length).toBeLessThan(20_000);
    expect(body.length).toBeGreaterThan(18_000);
  });

  test('loses the last of its changes when the record is not enough', () => {
    const changes = Array.from({ length: 3_000 }, (_, index) => `some.member.${index}`);
    const body = standard(eventWith({ ...CORE, note: 'x' }, { changes }));
    expect(body.length).toBeLessThan(20_000);
    const { data } = read(body);
    expect(data.record).toEqual(CORE);
    expect(data.changes).toEqual(changes.slice(0, data.changes.length));
    expect(data.changes.length).toBeGreaterThan(500);
  });

  test('loses whole members of merged metadata, the largest first and ties by name, and names them', () => {
    const metadata = { b: 'é'.repeat(4_000), a: 'é'.repeat(4_000), c: 'x'.repeat(8_100), order: '1042' };
    const body = standard(eventWith(CORE, { metadata }));
    expect(body.length).toBeLessThanOrEqual(MAX_WEBHOOK_BYTES);
    const { data } = read(body);
    expect(data.metadata).toEqual({ a: metadata.a, b: metadata.b, order: '1042' });
    expect(data).toMatchObject({ truncated: ['c'], recordTruncated: true });
    expect(RENDERED_EVENT.safeParse(read(body)).error).toBeUndefined();
    const tied = { d: 'é'.repeat(4_000), ...metadata, c: '' };
    expect(read(standard(eventWith(CORE, { metadata: tied }))).data.truncated).toEqual(['a']);
  });

  test.each([
    ['names of metadata', { metadata: Object.fromEntries(names(2_500).map((name) => [name, ''])) }],
    ['wallets', { wallets: names(2_500) }],
    ['subscriptions', { subscriptions: names(2_500) }],
  ])('fits for any number of %s', (_, more) => {
    const body = standard(eventWith(CORE, more));
    expect(body.length).toBeLessThanOrEqual(MAX_WEBHOOK_BYTES);
    expect(body.length).toBeGreaterThan(18_000);
  });
});

test('an event of any size is below 20 kB, and whole exactly when it fits', () => {
  const member = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc.nat(9_000).map((length) => 'ü'.repeat(length)),
  );
  const records = fc.dictionary(fc.string({ maxLength: 12 }), member, { maxKeys: 20 });
  fc.assert(
    fc.property(records, (found) => {
      const record: JsonObject = JSON.parse(JSON.stringify(found));
      const event = eventWith(record);
      const body = standard(event);
      const whole = Buffer.byteLength(JSON.stringify(event)) < 20_000;
      expect(body.length).toBeLessThan(20_000);
      const { data } = read(body);
      expect(data.recordTruncated).toBe(whole ? undefined : true);
      if (whole) expect(read(body)).toEqual(event);
      // The present members are unchanged.
      for (const [key, value] of Object.entries(data.record)) expect(value).toEqual(record[key]);
    }),
    { numRuns: 200 },
  );
});

function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `n${index}`.padStart(10, '-'));
}

/** Texts of an upstream meant to reach the readers of a channel. */
const HOSTILE =
  '<!channel> <@U1> @everyone *b* _i_ `c` [x](https://evil.example) <https://evil.example|y> & > q';

const TRANSFER: JsonObject = {
  ...CORE,
  sourceTx: {
    chainId: 8453,
    txHash: `0x${'51'.repeat(32)}`,
    token: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
    amount: '1250000000',
  },
};

describe('a message for Slack', () => {
  const message = (event: RenderedEvent) =>
    JSON.parse(renderBody(event, { format: 'slack', recordUrl: null }).toString('utf8'));

  test('states the change, with a link to the transaction', () => {
    expect(message(eventWith(TRANSFER))).toEqual({
      text: 'Filled: 1,250.00 USDC, Base',
      blocks: [
        { type: 'header', text: { type: 'plain_text', emoji: false, text: 'Filled: 1,250.00 USDC, Base' } },
        {
          type: 'section',
          text: {
            type: 'plain_text',
            emoji: false,
            text: 'The transfer has been paid out on the destination chain.',
          },
        },
        {
          type: 'section',
          fields: [
            { type: 'plain_text', emoji: false, text: 'Status: pending → filled' },
            { type: 'plain_text', emoji: false, text: 'Changed: status' },
            { type: 'plain_text', emoji: false, text: 'Sent: 1,250.00 USDC on Base' },
            {
              type: 'mrkdwn',
              verbatim: true,
              text: `Source transaction: <https://basescan.org/tx/0x${'51'.repeat(32)}|0x${'51'.repeat(32)}>`,
            },
          ],
        },
      ],
    });
  });

  test('holds no mention and no link from the upstream, in any member', () => {
    const event = eventWith({ ...TRANSFER, [HOSTILE]: HOSTILE, error: HOSTILE }, { status: HOSTILE });
    const { text, blocks } = message({ ...event, type: `intent.${HOSTILE.toLowerCase()}` });
    const marked: string[] = [text];
    for (const { text: own, fields = [] } of blocks) {
      for (const part of [own, ...fields]) if (part?.type === 'mrkdwn') marked.push(part.text);
    }
    expect(marked.length).toBeGreaterThan(1);
    for (const each of marked)
      expect(each.replaceAll(/<https:\/\/basescan\.org\/tx\/0x[0-9a-f]+\|/g, '')).not.toMatch(/<[!@#h]/);
    expect(JSON.stringify(blocks)).toContain('<!channel>');
  });
});

test('a message for Slack stays within its limits, for any record', () => {
  const long = '&'.repeat(5_000);
  const members = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`${long}${index}`, long]));
  const event = eventWith({ ...TRANSFER, ...members, '': long }, { status: long });
  const { blocks } = JSON.parse(
    renderBody({ ...event, type: `intent.${long}` }, { format: 'slack', recordUrl: null }).toString('utf8'),
  );
  const [header, summary, { fields }] = blocks;
  expect(header.text.text.length).toBeLessThanOrEqual(150);
  expect(summary.text.text.length).toBeLessThanOrEqual(3_000);
  expect(fields.length).toBeLessThanOrEqual(10);
  for (const { text } of [header.text, summary.text, ...fields]) {
    expect([text.length > 0, text.length <= 2_000]).toEqual([true, true]);
  }
});

describe('a message for Discord', () => {
  const message = (event: RenderedEvent) =>
    JSON.parse(renderBody(event, { format: 'discord', recordUrl: null }).toString('utf8'));

  test('states the change, with a link to the transaction', () => {
    expect(message(eventWith(TRANSFER))).toEqual({
      allowed_mentions: { parse: [] },
      embeds: [
        {
          title: 'Filled\\: 1,250.00 USDC, Base',
          description: 'The transfer has been paid out on the destination chain.',
          timestamp: '2026-11-20T11:31:00.123Z',
          fields: [
            { name: 'Status', value: 'pending → filled', inline: false },
            { name: 'Changed', value: 'status', inline: false },
            { name: 'Sent', value: '1,250.00 USDC on Base', inline: false },
            {
              name: 'Source transaction',
              value: `[0x${'51'.repeat(32)}](https://basescan.org/tx/0x${'51'.repeat(32)})`,
              inline: false,
            },
          ],
        },
      ],
    });
  });

  test('escapes every mark in the texts of the upstream, and mentions no user', () => {
    const event = eventWith({ ...TRANSFER, [HOSTILE]: HOSTILE }, { status: HOSTILE });
    const { embeds, allowed_mentions } = message({ ...event, type: `intent.${HOSTILE.toLowerCase()}` });
    expect(allowed_mentions).toEqual({ parse: [] });
    const [{ title, description, fields }] = embeds;
    const texts = [
      title,
      description,
      ...fields.flatMap(({ name, value }: Record<string, string>) => [name, value]),
    ];
    const foreign = texts.filter((text) => text.includes('channel'));
    expect(foreign.length).toBeGreaterThan(3);
    for (const text of foreign) expect(text.replaceAll(/\\./g, '')).not.toMatch(/[\\`*_~|>#[\]()<@:/]/);
  });

  test.each(['', '\u200b', '\n\t', ' '])('has a name for a member that the upstream names %j', (key) => {
    const [{ fields }] = message(eventWith({ [key]: 'value' })).embeds;
    expect(fields.at(-1)).toEqual({ name: 'unnamed', value: 'value', inline: false });
  });

  test('omits a link that makes a field too long', () => {
    const txHash = `0x${'5'.repeat(2_000)}`;
    const [{ fields }] = message(eventWith({ ...TRANSFER, txHash })).embeds;
    for (const { value } of fields) expect(value.length).toBeLessThanOrEqual(1_024);
  });

  test('stays within the limits of Discord, for any record', () => {
    const long = '*'.repeat(5_000);
    const members = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`${long}${index}`, long]));
    const [embed] = message(eventWith(members, { status: long, changes: Object.keys(members) })).embeds;
    const { title, description, fields } = embed;
    expect(title.length).toBeLessThanOrEqual(256);
    expect(description.length).toBeLessThanOrEqual(4_096);
    expect(fields.length).toBeLessThanOrEqual(25);
    let total = title.length + description.length;
    for (const { name, value } of fields) {
      expect([name.length <= 256, value.length <= 1_024, name !== '', value !== '']).toEqual([
        true,
        true,
        true,
        true,
      ]);
      total += name.length + value.length;
    }
    expect(total).toBeLessThanOrEqual(6_000);
  });
});

describe('a message for Teams', () => {
  const bytesOf = (event: RenderedEvent) => renderBody(event, { format: 'teams', recordUrl: null });
  const cardOf = (event: RenderedEvent) => JSON.parse(bytesOf(event).toString('utf8')).attachments[0].content;

  test('is an Adaptive Card about the change, with a link to the transaction', () => {
    const fact = (name: string, value: string, more = {}) => ({
      type: 'RichTextBlock',
      spacing: 'Small',
      inlines: [
        { type: 'TextRun', text: name, weight: 'Bolder' },
        ': ',
        { type: 'TextRun', text: value, ...more },
      ],
    });
    const txHash = `0x${'51'.repeat(32)}`;
    expect(JSON.parse(bytesOf(eventWith(TRANSFER)).toString('utf8'))).toEqual({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          contentUrl: null,
          content: {
            $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
            type: 'AdaptiveCard',
            version: '1.2',
            msteams: { width: 'Full' },
            body: [
              {
                type: 'RichTextBlock',
                inlines: [
                  { type: 'TextRun', text: 'Filled: 1,250.00 USDC, Base', size: 'Large', weight: 'Bolder' },
                ],
              },
              {
                type: 'RichTextBlock',
                inlines: [
                  { type: 'TextRun', text: 'The transfer has been paid out on the destination chain.' },
                ],
              },
              fact('Status', 'pending → filled'),
              fact('Changed', 'status'),
              fact('Sent', '1,250.00 USDC on Base'),
              fact('Source transaction', txHash, {
                selectAction: { type: 'Action.OpenUrl', url: `https://basescan.org/tx/${txHash}` },
              }),
            ],
          },
        },
      ],
    });
  });

  test('has text of the upstream in text runs alone, where Teams reads no Markdown', () => {
    const event = eventWith({ ...TRANSFER, [HOSTILE]: HOSTILE, error: HOSTILE }, { status: HOSTILE });
    const { body, ...rest } = cardOf({ ...event, type: `intent.${HOSTILE.toLowerCase()}` });
    expect(JSON.stringify(rest)).not.toContain('channel');
    const shown: string[] = [];
    for (const { type, inlines } of body) {
      expect(type).toBe('RichTextBlock');
      for (const inline of inlines) {
        if (inline === ': ') continue;
        expect(inline.type).toBe('TextRun');
        shown.push(inline.text);
        if (inline.selectAction) expect(inline.selectAction.url).toMatch(/^https:\/\/basescan\.org\/tx\//);
      }
    }
    expect(shown.filter((text) => text.includes('<!channel>')).length).toBeGreaterThan(3);
  });

  test('shows braces that would begin a date of the client as they came', () => {
    const error = '{{DATE(2026-11-20T10:00:00Z, SHORT)}} {{{';
    const texts: string = JSON.stringify(cardOf(eventWith({ ...TRANSFER, error })));
    expect(texts).toContain('DATE(2026-11-20T10:00:00Z, SHORT)');
    expect(texts.match(/"text":"[^"]*\{\{/g)).toBeNull();
  });

  test.each(['*', '"', 'é', '€', '🦆', '{'])('of %j stays below 28 kB, and has as much as fits', (mark) => {
    const long = mark.repeat(5_000);
    const members = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`${index} ${long}`, long]));
    const event = eventWith({ ...TRANSFER, ...members }, { status: long, changes: Object.keys(members) });
    const bytes = bytesOf({ ...event, type: `intent.${long}` });
    expect(bytes.length).toBeLessThan(28_000);
    expect(bytes.length).toBeGreaterThan(10_000);
  });
});
