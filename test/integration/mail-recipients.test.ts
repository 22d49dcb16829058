import { expect, inject, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { DeliveryStore } from '../../src/store/deliveries.ts';
import { Keys } from '../../src/store/keys.ts';
import { signalled, startDaemon, testPrefix } from '../support/daemon.ts';
import { Mailbox } from '../support/mailbox.ts';
import { opening } from '../support/opening.ts';
import { appendOperatorEvent, operatorEvent } from '../support/operator-event.ts';
import { hashOf, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const [ANN, BOB, CARL] = ['ann@example.com', 'bob@example.com', 'carl@example.com'];

test('a mail is sent again only to the recipients that the server refused for now', async () => {
  const mailbox = await started(new Mailbox());
  let refusals = 0;
  mailbox.refuse = (address) => {
    if (address === CARL) return { code: 550, text: 'no such user' };
    if (address !== BOB || refusals === 3) return null;
    refusals += 1;
    return { code: 452, text: 'mailbox full' };
  };
  const upstream = await started(new ScriptedUpstream(() => ({ records: [] })));
  const prefix = testPrefix();
  const lines: string[] = [];
  const { daemon, signals } = await startDaemon(
    {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: {},
      subscriptions: [{ name: 's', intents: [hashOf(1)], receivers: ['team'] }],
      more: {
        smtp: { url: mailbox.url, from: 'transfers@example.com' },
        receivers: [
          {
            name: 'team',
            type: 'email',
            to: [ANN, BOB, CARL],
            events: ['upstream.reachable'],
            retries: { delays: ['100ms', '100ms', '100ms', '100ms'], jitter: 0 },
          },
        ],
      },
    },
    (line) => lines.push(line),
  );
  later(() => daemon.close());
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(prefix);
  const ended = signalled<{ outcome: string }>((take) => signals.on('delivery.ended', take));
  const refused: number[] = [];
  signals.on('delivery.attempted', (attempt) => refused.push(attempt.refused));
  const event = operatorEvent('upstream.reachable', 1);
  await appendOperatorEvent(redis, keys, event);
  expect(await ended).toMatchObject({ outcome: 'delivered' });

  expect(mailbox.recipients).toEqual([[ANN], [BOB]]);
  expect(new Set(mailbox.mails.map(({ messageId }) => messageId)).size).toBe(1);
  const fact = await new DeliveryStore(redis, keys).fact('team', event.id);
  expect(fact?.attempts.map(({ outcome, remaining }) => ({ outcome, remaining }))).toEqual([
    ...[1, 2, 3].map(() => ({ outcome: 'failed', remaining: [BOB] })),
    { outcome: 'delivered', remaining: undefined },
  ]);
  // Refused for good: reported, and not tried again.
  expect(fact?.attempts[0]?.reason).toContain('accepted for 1 of 3 recipients');
  expect(lines.filter((line) => line.includes('no such user')).length).toBe(1);
  expect(refused).toEqual([1, 0, 0, 0]);
  expect(lines.join('\n')).not.toContain('@example.com');
});
