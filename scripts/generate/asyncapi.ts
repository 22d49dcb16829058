import { z } from 'zod';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { RENDERED_EVENT } from '../../src/domain/events/event-schema.ts';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';
import { VERSION } from '../../src/version.ts';

const HEADERS = {
  type: 'object',
  required: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
  properties: {
    'webhook-id': {
      type: 'string',
      description: 'The id of the event, the same for every attempt and replay.',
    },
    'webhook-timestamp': {
      type: 'string',
      pattern: '^\\d+$',
      description: 'When this attempt was made, Unix seconds.',
    },
    'webhook-signature': {
      type: 'string',
      description:
        'Signatures of Standard Webhooks, with a space between: `v1,` HMAC-SHA256, `v1a,` ed25519.',
    },
    'intentwatch-replay': {
      type: 'string',
      const: 'true',
      description: 'There where the operator sends it again.',
    },
  },
};

type AsyncApiInput = {
  examples: ReadonlyMap<string, RenderedEvent>;
  meaningOf: (type: string) => string;
};

/** The AsyncAPI 3 document of webhooks: a message for each type, with its JSON Schema and an example. */
export function asyncApi({ examples, meaningOf }: AsyncApiInput): object {
  const ref = (path: string): { $ref: string } => ({ $ref: `#/${path}` });
  const messages = EVENT_TYPES.map((type) => {
    const [kind] = type.split('.');
    const ofType = {
      properties: {
        type: { const: type },
        data: { properties: { subject: { properties: { kind: { const: kind } } } } },
      },
    };
    const message = {
      name: type,
      summary: meaningOf(type),
      contentType: 'application/json',
      headers: ref('components/schemas/headers'),
      payload: { allOf: [ref('components/schemas/event'), ofType] },
      examples: [{ name: type, payload: examples.get(type) }],
    };
    return [type, message] as const;
  });
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Intentwatch',
      version: VERSION,
      description:
        'The events that Intentwatch sends by webhook. Other types come too, for statuses that the upstream adds: each fits the schema `event`.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    channels: {
      webhook: {
        address: null,
        description: 'The `url` of a webhook receiver.',
        messages: Object.fromEntries(EVENT_TYPES.map((type) => [type, ref(`components/messages/${type}`)])),
      },
    },
    operations: {
      sendEvent: {
        action: 'send',
        channel: ref('channels/webhook'),
        summary: 'A POST that is made again until it is answered 2xx.',
        bindings: { http: { method: 'POST', bindingVersion: '0.3.0' } },
      },
    },
    components: {
      schemas: { event: envelope(), headers: HEADERS },
      messages: Object.fromEntries(messages),
    },
  };
}

/** The schema of events as draft 7, which AsyncAPI uses. */
function envelope(): unknown {
  const { $schema, $defs, definitions, ...schema } = z.toJSONSchema(RENDERED_EVENT, {
    io: 'input',
    target: 'draft-07',
  });
  return withoutRefs(schema);
}

/** Replaces references, which in events are all to "any JSON", by a schema that accepts everything. */
function withoutRefs(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutRefs);
  if (typeof schema !== 'object' || schema === null) return schema;
  if ('$ref' in schema) return {};
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withoutRefs(value)]));
}
