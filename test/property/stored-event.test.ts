import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EVENT, STORED_EVENT } from '../../src/domain/events/event-schema.ts';
import { withoutPrivateWords } from '../../src/log.ts';

const EVENT_OF = (record: unknown, before: unknown): unknown => ({
  id: `evt_${'0'.repeat(40)}`,
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
    before,
    upstreamUpdatedAt: null,
    detectionDelaySeconds: null,
  },
});

/** Values as `JSON.parse` gives them. */
const JSON_VALUE = fc.jsonValue({ maxDepth: 4 });
const MEMBER = fc.oneof(JSON_VALUE, fc.dictionary(fc.string(), JSON_VALUE));

test('an event read from its text passes, and is read, as where every member is checked for being JSON', () => {
  fc.assert(
    fc.property(MEMBER, MEMBER, (record, before) => {
      // A name that sets the prototype never comes from the upstream (see parseJson).
      fc.pre(!JSON.stringify([record, before]).includes('__proto__'));
      const parsed: unknown = JSON.parse(JSON.stringify(EVENT_OF(record, before)));
      const [checked, read] = [EVENT.safeParse(parsed), STORED_EVENT.safeParse(parsed)];
      expect(read.success).toBe(checked.success);
      expect(read.data).toEqual(checked.data);
    }),
  );
});

const PIECES = ['a@b.example', '@', 'whsec_', 'sk_live', 'AKIA9', 'eyJh.', 'eyJ', '-', '_', '.', 'x', '9'];
const SEPARATORS = [' ', ':', '=', ',', ';', '/', '<', '>', '"', "'", '\n', '('];
const LINE = fc
  .array(fc.constantFrom(...PIECES, ...SEPARATORS), { maxLength: 12 })
  .map((all) => all.join(''));

test('a text is searched for private words as each of its words is', () => {
  fc.assert(
    fc.property(LINE, (text) => {
      const byWord = text.replace(/[^\s<>"'=:,;/]+/g, (word) => withoutPrivateWords(word));
      expect(withoutPrivateWords(text)).toBe(byWord);
    }),
    { numRuns: 2_000 },
  );
});
