import { z } from 'zod';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { RENDERED_EVENT } from '../../src/domain/events/event-schema.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

const SCHEMA = z.toJSONSchema(RENDERED_EVENT, { io: 'input' });

/** An event of a type that has every member of the schema of events. `number` makes its id. */
export function eventWithEveryMember(type: string, number: number): RenderedEvent {
  const event = RENDERED_EVENT.parse(valueFor(SCHEMA));
  const [kind = ''] = type.split('.');
  return {
    ...event,
    id: `evt_${String(number).padStart(40, '0')}`,
    type,
    data: { ...event.data, subject: { kind, id: `${kind}:${number}` } },
  };
}

function valueFor(schema: JsonSchema | boolean): z.core.util.JSONType {
  if (typeof schema === 'boolean' || schema.$ref !== undefined) return [1, 'two', { three: [null, true] }];
  if (schema.const !== undefined) return true;
  if (schema.enum !== undefined) return schema.enum[0] ?? null;
  if (schema.anyOf !== undefined) return valueFor(schema.anyOf[0] ?? true);
  const type = [schema.type ?? 'null'].flat()[0];
  switch (type) {
    case 'string':
      return textOf(schema);
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return true;
    case 'array':
      return [schema.items ?? true].flat().map(valueFor);
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? { some: schema.additionalProperties ?? true }).map(
          ([key, member]) => [key, valueFor(member)],
        ),
      );
    default:
      return null;
  }
}

function textOf({ format, pattern }: JsonSchema): string {
  if (format === 'date-time') return '2026-11-20T11:31:00.123Z';
  if (pattern?.includes('evt_')) return `evt_${'0'.repeat(40)}`;
  if (pattern?.includes('a-z0-9')) return 'intent.filled';
  return pattern === undefined ? 'naïve ✓ "quoted"' : '1042';
}
