import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { TestReceiver, testPrefix } from '../support/daemon.ts';
import { newSandbox } from '../support/deployment.ts';
import { opening } from '../support/opening.ts';
import { fundAt, orderAt, quoteAt, type SandboxOrder } from '../support/sandbox-order.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const { child, started } = opening();

async function watching(sandbox: Sandbox, named: object): Promise<TestReceiver> {
  const hook = await started(new TestReceiver());
  const daemon = child({
    baseUrl: sandbox.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', ...named, receivers: ['hook'], metadata: { order: '1042' } }],
  });
  await daemon.start();
  return hook;
}

async function firstOf(hook: TestReceiver, intentHash: string): Promise<RenderedEvent | undefined> {
  const of = (events: RenderedEvent[]) =>
    events.find(({ data }) => data.subject.id === `intent:${intentHash.toLowerCase()}`);
  return of(await hook.until((events) => of(events) !== undefined));
}

test('transfers of one transaction that are indexed one by one are all found', async () => {
  const sandbox = await started(newSandbox({ timeScale: 60, transfersPerSecond: 0 }));
  const [sourceTx, destinationTx] = [hashOf(5), hashOf(6)];
  const hook = await watching(sandbox, { sourceTxs: [sourceTx], destinationTxs: [destinationTx] });
  const oneByOne = async (order: SandboxOrder, count: number): Promise<void> => {
    for (let index = 0; index < count; index++) {
      const { intentHash } = await orderAt(sandbox, order);
      const event = await firstOf(hook, intentHash);
      expect(event?.data).toMatchObject({ sequence: 1, subscriptions: ['s'], metadata: { order: '1042' } });
    }
  };
  await Promise.all([oneByOne({ sourceTx }, 3), oneByOne({ states: { txHash: destinationTx } }, 2)]);
});

test('an intent that a quote names a day later is found while another of its intents is open', async () => {
  const sandbox = await started(newSandbox({ transfersPerSecond: 0 }));
  const fault = async (body: object): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    const url = `${sandbox.controlUrl}/faults`;
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return z.looseObject({ id: z.number() }).parse(await answer.json()).id;
  };
  const { id: quoteId } = await quoteAt(sandbox, { swapsTo: 'USDT' });
  const partly = await fault({ type: 'partly-indexed' });
  // The quote was funded more than a day ago.
  await fault({ type: 'clock-skew', skewSeconds: -90_000 });
  const funded = await fundAt(sandbox, { quoteId });
  if (funded === 'expired') throw new Error('a quote of 300 s has expired');
  const hook = await watching(sandbox, { quotes: [quoteId.slice('quote:'.length)] });
  await firstOf(hook, funded.intentHash);
  await fetch(`${sandbox.controlUrl}/faults/${partly}`, { method: 'DELETE' });
  const events = await hook.until((all) => new Set(all.map(({ data }) => data.subject.id)).size === 3);
  expect(events.map(({ type }) => type)).toContain('quote.updated');
});
