import { existsSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import {
  destinationTx,
  now,
  promisingQuote,
  QUOTE_INTENT,
  quoteStage,
  sourceTx,
  typesOf,
} from '../support/quote-stage.ts';

const open = opening();
const { started, child } = open;
const { serving, shown, quoteFile } = quoteStage(open);

test.each([
  ['at first sight', 0],
  ['after it was pending', 2],
])('a short delivery is reported once where the daemon is killed between the record and that, %s', async (_, pendingPolls) => {
  let polls = 0;
  const fundedAt = now() - 8;
  const upstream = await serving(({ query }) => {
    if (query.intentHash !== QUOTE_INTENT) return shown('submitted');
    polls += 1;
    if (polls <= pendingPolls) {
      return {
        records: [{ id: `intent:${QUOTE_INTENT}`, type: 'intent', status: 'pending', updatedAt: fundedAt }],
      };
    }
    const record = { status: 'settled', updatedAt: now() - 6, sourceTx };
    const delivered = { destinationTx: { ...destinationTx, amount: '900000' } };
    return { records: [{ id: `intent:${QUOTE_INTENT}`, type: 'intent', ...record, ...delivered }] };
  });
  const file = await quoteFile(await promisingQuote());
  const hook = await started(new TestReceiver());
  const marker = `${file}.killed`;
  const killer = new URL('../support/killed-before-write.ts', import.meta.url);
  killer.search = String(new URLSearchParams({ text: 'intent.short', marker }));
  const daemon = child(
    {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', quotes: [{ file }], intents: [QUOTE_INTENT], receivers: ['hook'] }],
    },
    ['--import', killer.href],
  );
  const beginning = daemon.start().catch(() => undefined);
  await eventually('the daemon was killed', () => existsSync(marker));
  await daemon.kill();
  await beginning;
  await daemon.start();
  await hook.until((all) =>
    ['intent.settled', 'intent.short'].every((wanted) => all.some(({ type }) => type === wanted)),
  );
  const events = new Map(hook.events.map((event) => [event.id, event]));
  const reported = [...events.values()].filter(({ data }) => data.subject.kind === 'intent');
  const types = typesOf(reported).filter((type) => type !== 'intent.pending' && type !== 'intent.updated');
  expect(types.toSorted()).toEqual(['intent.settled', 'intent.short']);
});
