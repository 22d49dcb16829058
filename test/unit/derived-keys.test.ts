import { expect, test } from 'vitest';
import { Secret } from '../../src/secret.ts';
import { Sessions } from '../../src/server/console/sessions.ts';
import { EventLinks } from '../../src/server/event-links.ts';
import { Encryption } from '../../src/store/added-receivers.ts';

const TOKEN = new Secret('a-token-of-some-length');

test.each([
  ['links', () => EventLinks.create(TOKEN)],
  ['sessions', () => Sessions.create([{ scope: 'read', token: TOKEN }])],
  ['stored receivers', () => Encryption.create(TOKEN)],
])('keys of %s are derived outside the event loop', async (_, create) => {
  let isDerived = false;
  const created: Promise<unknown> = create();
  const derived = created.then(() => {
    isDerived = true;
  });
  // The result of another thread arrives in a later turn of the event loop, never between two microtasks.
  for (let turn = 0; turn < 100; turn += 1) await Promise.resolve();
  expect(isDerived).toBe(false);
  await derived;
});
