import { expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { opening } from '../support/opening.ts';
import { ONE, request, suspensionStage, TWO, WALLET } from '../support/suspension-stage.ts';

const open = opening();

test('an address finds the wallet with the transfers that its pages showed, and `show` its wallet', async () => {
  const { change, url } = await suspensionStage(open);
  await change(ONE, 'pending');
  await change(TWO, 'pending');
  const found = await request(`${url()}/api/v1/subjects?mentions=${WALLET.toUpperCase().replace('X', 'x')}`);
  const next = await request(`${url()}/api/v1/subjects?mentions=${WALLET}&cursor=${found.next}`);
  const ids = [found, next].flatMap(({ subjects }) => JSON.stringify(subjects).match(/\w+:0x\w+/g));
  expect(new Set(ids)).toEqual(new Set([`intent:${ONE}`, `intent:${TWO}`, `wallet:${WALLET}`]));
  const shown = await runCommand(['show', WALLET], { INTENTWATCH_URL: url() });
  expect(shown.out).toMatch(/^ {2}status +watched, under way$/m);
  expect(shown.out).toContain(`its events are those of its transfers: intentwatch ls --wallet ${WALLET}`);
});
