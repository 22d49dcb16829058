import { expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { opening } from '../support/opening.ts';
import { ONE, REST, request, shown, suspensionStage, TREASURY, WALLET } from '../support/suspension-stage.ts';

const open = opening();

/** The id of the newest event of the first transfer, which its receiver need not have. */
async function newestId(url: string): Promise<string> {
  const { events } = await request(`${url}/api/v1/events?subject=intent:${ONE}&order=newest&limit=1`);
  return JSON.parse(JSON.stringify(events))[0].id;
}

test('an event that waits is sent on demand, and comes again in its turn', async () => {
  const { backend, desk, reload, change, url } = await suspensionStage(open);
  await change(ONE, 'pending');
  await backend.until((came) => came.length === 1);
  await reload([REST]);
  await change(ONE, 'filled');
  await change(ONE, 'settled');
  const env = { INTENTWATCH_URL: url() };
  expect(await runCommand(['resend', await newestId(url())], env)).toMatchObject({
    code: 0,
    out: 'backend: 1 event sent once more: 1 delivered, 0 dead letters',
  });
  await reload([REST, TREASURY]);
  await backend.until((came) => came.length >= 4);
  expect(shown(backend, 1)).toEqual([
    ['intent.settled', `intent:${ONE}`, true],
    ['intent.filled', `intent:${ONE}`, true],
    ['intent.settled', `intent:${ONE}`, true],
  ]);
  const ids = backend.came.map(({ event }) => event.id);
  expect(ids[1]).toBe(ids[3]);
  expect(desk.came).toEqual([]);
});

test('an event that waits without a receiver is refused with the name of the suspended subscription', async () => {
  const { backend, reload, change, url } = await suspensionStage(open);
  await change(ONE, 'pending');
  await backend.until((came) => came.length === 1);
  await reload([REST], {}, ['desk']);
  await change(ONE, 'filled');
  const env = { INTENTWATCH_URL: url() };
  const { code, err } = await runCommand(['resend', await newestId(url())], env);
  expect(code).toBe(1);
  expect(err).toContain(`waits for treasury (wallet:${WALLET}), which left the config`);
});
