import { expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { startDaemon } from '../support/daemon.ts';
import { happen } from '../support/delivery-stage.ts';
import { madeEventId } from '../support/log-entries.ts';
import { happenLater, mailConfig, mailStage, waiting } from '../support/mail-stage.ts';
import { eventsOf } from '../support/mailbox.ts';
import { opening } from '../support/opening.ts';

const open = opening();

const MINUTE_MS = 60_000;

function timeOfDay(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 16);
}

test('quiet hours hold every event and send one digest at their end, on the minute; then each is a mail again', async () => {
  const { mailbox, stage } = await mailStage(open, {});
  // The next whole minute that leaves time to start, even a slow start of a minute.
  const endMs = Math.ceil(((await redisTimeMs(stage.redis)) + MINUTE_MS) / MINUTE_MS) * MINUTE_MS;
  const quietHours = { from: timeOfDay(endMs - 60 * MINUTE_MS), to: timeOfDay(endMs), timeZone: 'UTC' };
  const config = { ...stage.config, more: mailConfig(mailbox.url, { quietHours }) };
  const { daemon } = await startDaemon(config);
  open.later(() => daemon.close());
  const made = await happen(stage, 7);
  await waiting(stage, 7);
  expect(mailbox.mails).toEqual([]);
  await mailbox.until((mails) => mails.length === 1);
  expect(await redisTimeMs(stage.redis)).toBeGreaterThanOrEqual(endMs);
  expect(mailbox.mails.map(eventsOf)).toEqual([made.map(madeEventId)]);
  const day = await happenLater(stage, made);
  await mailbox.until((mails) => mails.length === 3);
  // Of two transfers: in any order.
  expect(mailbox.mails.slice(1).map(eventsOf).toSorted()).toEqual(
    day.map((event) => [madeEventId(event)]).toSorted(),
  );
});
