import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';

/** Texts for the patterns of shapes; a pattern that none of them fits needs one here. */
const TEXTS = ['intent.refunded', `evt_${'ab'.repeat(20)}`, '2026-11-20T10:00:00.123Z', '1700000000', '8453'];

type Shape = {
  type?: string | string[];
  properties?: Record<string, Shape>;
  items?: Shape;
  anyOf?: Shape[];
  pattern?: string;
  const?: JsonValue;
  enum?: JsonValue[];
  maximum?: number;
};

/** A value of a shape with every member set. Each number and text is different, so that none can pass for another. */
export function wholeOf<T>(schema: z.ZodType<T>): T {
  let count = 41;
  const make = (shape: Shape, name: string): JsonValue => {
    if (shape.const !== undefined) return shape.const;
    if (shape.enum?.[0] !== undefined) return shape.enum[0];
    if (shape.anyOf !== undefined) {
      const one = shape.anyOf.find(({ type }) => type !== 'null');
      return one === undefined ? null : make(one, name);
    }
    if (shape.properties !== undefined) {
      const made: JsonObject = {};
      for (const [key, member] of Object.entries(shape.properties)) made[key] = make(member, key);
      return made;
    }
    const type = [shape.type].flat().find((one) => one !== 'null');
    switch (type) {
      case 'object':
        return { [`${name}-member`]: `${name}-${++count}` };
      case 'array':
        return [make(shape.items ?? { type: 'string' }, name)];
      case 'integer':
        return ++count;
      case 'number':
        return shape.maximum === 1 ? ++count / 100 : ++count;
      case 'boolean':
        return true;
      case 'string':
        return textFor(shape.pattern, `${name}-${++count}`);
      default:
        throw new Error(`${name}: found a shape of type ${String(shape.type)}, expected one of JSON`);
    }
  };
  const shape: Shape = JSON.parse(JSON.stringify(z.toJSONSchema(schema, { io: 'input' })));
  return schema.parse(make(shape, ''));
}

function textFor(pattern: string | undefined, otherwise: string): string {
  if (pattern === undefined) return otherwise;
  const text = TEXTS.find((one) => new RegExp(pattern).test(one));
  if (text === undefined) throw new Error(`found no text for ${pattern}, expected one in TEXTS`);
  return text;
}
