import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { generateEventFiles } from '../../scripts/generate/events.ts';
import { RENDERED_EVENT } from '../../src/domain/events/event-schema.ts';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';

const files = new Map((await generateEventFiles()).map(({ path, content }) => [path, content]));

function fileAt(path: string): string {
  const content = files.get(path);
  if (content === undefined) throw new Error(`nothing is generated at ${path}`);
  return content;
}

function exampleOf(type: string): z.infer<typeof RENDERED_EVENT> {
  return RENDERED_EVENT.parse(JSON.parse(fileAt(`docs/events/${type}.json`)));
}

const schema = z.fromJSONSchema(JSON.parse(fileAt('docs/events/schema.json')));

describe.each(EVENT_TYPES)('the event type %s', (type) => {
  test('has a meaning and states when it comes', () => {
    const row = fileAt('docs/events.md')
      .split('\n')
      .find((line) => line.startsWith(`| \`${type}\` |`));
    const [, , meaning = '', comes = ''] = (row ?? '').split('|').map((cell) => cell.trim());
    expect(meaning).toMatch(/^\S.+\.$/);
    expect(comes).toMatch(/^\S.+$/);
  });

  test('has an example of itself that fits the published schema', () => {
    const example: unknown = JSON.parse(fileAt(`docs/events/${type}.json`));
    expect(schema.safeParse(example).error).toBeUndefined();
    expect(exampleOf(type).type).toBe(type);
  });
});

test('the published schema refuses an event without its id, and takes members that it does not name', () => {
  const { id, ...rest } = exampleOf('intent.filled');
  expect(schema.safeParse(rest).success).toBe(false);
  const data = { ...rest.data, later: 'a member of a later version' };
  expect(schema.safeParse({ ...rest, id, data }).success).toBe(true);
});

test('nothing is generated for a type that does not exist', () => {
  const types = [...files.keys()]
    .filter((path) => path.startsWith('docs/events/') && path !== 'docs/events/schema.json')
    .map((path) => path.slice('docs/events/'.length, -'.json'.length));
  expect(types).toEqual([...EVENT_TYPES]);
});

test('no two examples have the same event id', () => {
  const ids = EVENT_TYPES.map((type) => exampleOf(type).id);
  expect(new Set(ids).size).toBe(ids.length);
});

test('the examples of events of the clock change nothing but themselves', () => {
  for (const type of ['intent.overdue', 'gasless.overdue', 'vault.overdue', 'vault.expired']) {
    const { status, previousStatus, changes } = exampleOf(type).data;
    expect({ type, moved: status !== previousStatus, changes }).toEqual({ type, moved: false, changes: [] });
  }
});
