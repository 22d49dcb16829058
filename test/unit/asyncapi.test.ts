import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';

const load = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
const document = load(new URL('../../docs/asyncapi.json', import.meta.url).pathname);
const PUBLISHED = createRequire(import.meta.url).resolve('@asyncapi/specs/schemas/3.0.0-without-$id.json');

const DOCUMENT = z.object({
  components: z.object({
    schemas: z.object({ event: z.object({}).loose() }),
    messages: z.record(
      z.string(),
      z.object({
        payload: z.object({}).loose(),
        examples: z.array(z.object({ payload: z.json() })).length(1),
      }),
    ),
  }),
});

const { components } = DOCUMENT.parse(document);
const payloads = new Ajv({ strict: false });
formats.default(payloads);
payloads.addSchema({ $id: 'doc', components });

function validatorOf(type: string) {
  return payloads.compile({ $ref: `doc#/components/messages/${type}/payload` });
}

test('the AsyncAPI document fits the schema that AsyncAPI publishes', () => {
  const ajv = new Ajv({ strict: false, allErrors: false, logger: false });
  formats.default(ajv);
  const validate = ajv.compile(z.object({}).loose().parse(load(PUBLISHED)));
  expect(validate(document), JSON.stringify(validate.errors?.slice(0, 5))).toBe(true);
  expect(validate({ ...z.object({}).loose().parse(document), channels: [] })).toBe(false);
});

test('it has a message for every type of event, and no other', () => {
  expect(Object.keys(components.messages)).toEqual([...EVENT_TYPES]);
});

test.each(EVENT_TYPES)('the schema of %s accepts its example, and no other type', (type) => {
  const example = components.messages[type]?.examples[0]?.payload;
  const validate = validatorOf(type);
  expect(validate(example), JSON.stringify(validate.errors)).toBe(true);
  const other = components.messages[type === 'intent.filled' ? 'intent.settled' : 'intent.filled'];
  expect(validate(other?.examples[0]?.payload)).toBe(false);
});
