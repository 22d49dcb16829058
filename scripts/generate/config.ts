import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { configSchema } from '../../src/config/schema.ts';
import { isSchema, renderConfigPage, type Schema } from './config-page.ts';

const VARIABLE = '\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\\}';

/** Generates the JSON Schema for editors, and the page that lists every key. Paths are relative to the repository. */
export async function generateConfigFiles(): Promise<{ path: string; content: string }[]> {
  const example = await readFile(new URL('../../config/intentwatch.example.yaml', import.meta.url), 'utf8');
  const schema = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-07' });
  const forEditors = { title: 'Intentwatch configuration', ...forEditor(schema) };
  return [
    { path: 'config/schema.json', content: `${JSON.stringify(forEditors, null, 2)}\n` },
    { path: 'docs/configuration.md', content: renderConfigPage(schema, example) },
  ];
}

/** Allows `${VAR}` for every scalar; an editor sees text there, for any type of field. */
function forEditor({ label: _onlyForThePage, example, ...schema }: Schema): Schema {
  const { type, enum: words, pattern, minimum, maximum, exclusiveMinimum, ...rest } = schema;
  const isRestricted = type === 'number' || type === 'integer' || type === 'boolean' || pattern || words;
  if (isRestricted) {
    const written = withoutUndefined({ type, enum: words, pattern, minimum, maximum, exclusiveMinimum });
    return { ...rest, anyOf: [written, { type: 'string', pattern: VARIABLE }] };
  }
  const { properties } = schema;
  return withoutUndefined({
    ...schema,
    examples: example,
    properties:
      properties &&
      Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, inside(value)])),
    items: inside(schema.items),
    anyOf: schema.anyOf?.map(inside),
    oneOf: schema.oneOf?.map(inside),
    additionalProperties: inside(schema.additionalProperties),
  });
}

function inside(value: unknown): unknown {
  return isSchema(value) ? forEditor(value) : value;
}

function withoutUndefined(schema: object): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}
