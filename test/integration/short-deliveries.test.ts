import { describe, expect, inject, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventually } from '../support/eventually.ts';
import { logEntries } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import {
  chainsWith,
  destinationTx,
  now,
  PROMISED_TOKENS,
  promisingQuote,
  QUOTE_INTENT,
  quoteStage,
  sourceTx,
  typesOf,
} from '../support/quote-stage.ts';
import { QUOTE_SIGNER } from '../support/signed-quote.ts';

const open = opening();
const { later } = open;
const { serving, shown, quoteFile, watching } = quoteStage(open);

describe('a transfer whose quote was imported', () => {
  /** The events after the funding: the intent with these records in turn, and a change after which no other can come. */
  async function followed(shownAs: readonly JsonObject[], quote: JsonObject) {
    let time = 0;
    const upstream = await serving(({ query }) => {
      if (query.intentHash !== QUOTE_INTENT) return shown('submitted', { intentHashes: [QUOTE_INTENT] });
      const record = shownAs[Math.min(time, shownAs.length - 1)] ?? {};
      time += 1;
      return { records: [{ id: `intent:${QUOTE_INTENT}`, type: 'intent', sourceTx, ...record }] };
    });
    const { hook, config, start } = await watching(upstream.url, [{ file: await quoteFile(quote) }]);
    const running = await start();
    const settled = (all: readonly RenderedEvent[]) => all.some(({ type }) => type === 'intent.settled');
    const events = (await hook.until(settled)).filter(({ data }) => data.subject.kind === 'intent');
    return { events, running, logged: await loggedTypes(config.prefix) };
  }

  /** The types of all events of the intent, once it is no longer polled: from then on none is made. */
  async function loggedTypes(prefix: string): Promise<string[]> {
    const [redis, keys] = [connect({ kind: 'server', url: inject('redisUrl') }), new Keys(prefix)];
    later(() => disconnect(redis));
    const intent = `intent:${QUOTE_INTENT}`;
    await eventually(
      'the intent is polled no more',
      async () => (await redis.hexists(`${keys.plan('status')}:items`, intent)) === 0,
    );
    const log = await logEntries(redis, keys);
    return log.flatMap((entry) =>
      entry.kind === 'event' && entry.event.data.subject.id === intent ? [entry.event.type] : [],
    );
  }

  test('is reported as short, once, when less was delivered than the minimum', async () => {
    const short = { ...destinationTx, amount: '900000' };
    const { events, running } = await followed(
      [
        { status: 'pending', updatedAt: now() - 9 },
        { status: 'filled', updatedAt: now() - 8, destinationTx: short },
        { status: 'filled', updatedAt: now() - 7, destinationTx: short, note: 'more' },
        { status: 'settled', updatedAt: now() - 6, destinationTx: short },
      ],
      await promisingQuote(),
    );
    expect(typesOf(events)).toEqual([
      'intent.pending',
      'intent.filled',
      'intent.short',
      'intent.updated',
      'intent.settled',
    ]);
    expect(events[0]?.data.transfer).toMatchObject({
      promised: { amount: '999000', units: '0.999', symbol: 'USDC' },
      fees: [{ kind: 'solver', amount: '1000' }],
      recipient: '0x52908400098527886e0f7030069857d2e4169ee7',
    });
    expect(events[2]?.data).toMatchObject({
      status: 'filled',
      changes: [],
      transfer: { shortfall: { amount: '94000', units: '0.094', share: 0.094567 } },
    });
    const metrics = await (await fetch(`${running.daemon.url}/metrics`)).text();
    expect(metrics).toContain('intentwatch_delivered_ratio_count{route="8453:10"} 1');
  });

  test.each([
    ['', 0],
    [', and the poll after that fails', 1],
  ])('is reported as short also where the quote is found valid only after the transfer has ended%s', async (_, failures) => {
    const ended = Promise.withResolvers<void>();
    const endedAt = now() - 6;
    let isEnded = false;
    let failed = 0;
    const upstream = await serving(
      ({ query }) => {
        if (query.intentHash !== QUOTE_INTENT) return shown('submitted');
        if (isEnded && failed < failures) {
          failed += 1;
          return { status: 502, body: '{}' };
        }
        const record = { status: 'settled', updatedAt: endedAt, sourceTx };
        const delivered = { destinationTx: { ...destinationTx, amount: '900000' } };
        return { records: [{ id: `intent:${QUOTE_INTENT}`, type: 'intent', ...record, ...delivered }] };
      },
      async () => {
        await ended.promise;
        return chainsWith(QUOTE_SIGNER.address);
      },
    );
    const quotes = [{ file: await quoteFile(await promisingQuote()) }];
    const { hook, start } = await watching(upstream.url, quotes, { intents: [QUOTE_INTENT] });
    await start();
    await hook.until((all) => all.some(({ type }) => type === 'intent.settled'));
    isEnded = true;
    ended.resolve();
    const events = await hook.until((all) => all.some(({ type }) => type === 'intent.short'));
    expect(typesOf(events.filter(({ data }) => data.subject.kind === 'intent'))).toEqual([
      'intent.settled',
      'intent.short',
    ]);
    expect(failed).toBe(failures);
  });

  test.each<[string, JsonObject]>([
    ['the minimum', { amount: '994000' }],
    ['another token', { amount: '1', token: PROMISED_TOKENS.source }],
    ['on another chain', { amount: '1', chainId: 42161 }],
  ])('is not reported as short when the delivery is %s', async (_, delivered) => {
    const { events, logged } = await followed(
      [
        { status: 'pending', updatedAt: now() - 9 },
        { status: 'settled', updatedAt: now() - 6, destinationTx: { ...destinationTx, ...delivered } },
      ],
      await promisingQuote(),
    );
    expect(typesOf(events)).toEqual(['intent.pending', 'intent.settled']);
    expect(logged).toEqual(['intent.pending', 'intent.settled']);
  });
});
