import { CLAIM_KEY, type DeliveryStage, deliveryStage } from './delivery-stage.ts';
import { eventually } from './eventually.ts';
import { appendEvents, type MadeEvent } from './log-entries.ts';
import { Mailbox } from './mailbox.ts';
import type { opening } from './opening.ts';
import { hashOf } from './scripted-upstream.ts';

/** The config of every mail receiver of these tests, and the additions of one test. */
export function mailConfig(url: string, more: object): object {
  return {
    smtp: { url, from: 'Intentwatch <transfers@example.com>' },
    receivers: [
      { name: 'oncall', type: 'email', to: ['a@example.com'], retries: { delays: ['1ms'] }, ...more },
    ],
    subscriptions: [{ name: 's', intents: [hashOf(77)], receivers: ['oncall'] }],
  };
}

/** A stage with one receiver of mail. */
export async function mailStage(
  open: ReturnType<typeof opening>,
  more: object,
): Promise<{ mailbox: Mailbox; stage: DeliveryStage }> {
  const mailbox = await open.started(new Mailbox());
  return { mailbox, stage: await deliveryStage(open, {}, mailConfig(mailbox.url, more)) };
}

/** Appends two more events, after the existing ones. */
export async function happenLater(
  { redis, keys }: DeliveryStage,
  made: readonly MadeEvent[],
): Promise<MadeEvent[]> {
  const atMs = made.at(-1)?.atMs ?? 0;
  const more = [1, 2].map((step) => ({
    subject: `intent:${hashOf(5_000 + step)}`,
    sequence: 1,
    atMs: atMs + step * 1_000,
    key: CLAIM_KEY,
  }));
  await appendEvents(redis, keys, more);
  return more;
}

/** Resolves when `count` events wait for their digest. */
export async function waiting({ redis, keys }: DeliveryStage, count: number): Promise<void> {
  await eventually(`${count} wait`, async () => (await redis.zcard(keys.waiting('oncall'))) === count);
}
