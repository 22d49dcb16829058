import { expect, test } from 'vitest';
import { happen } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { madeEventId } from '../support/log-entries.ts';
import { happenLater, mailStage } from '../support/mail-stage.ts';
import { eventsOf } from '../support/mailbox.ts';
import { opening } from '../support/opening.ts';

const open = opening();

test('a digest cut off by a kill -9 between the answer and our note is sent again with the same Message-ID', async () => {
  const { mailbox, stage } = await mailStage(open, { digest: { every: '1h', max: 5 }, timeout: '5m' });
  // The server has the mail, and never answers; the attempt lasts until after the kill.
  mailbox.answer = () => 'nothing';
  const daemon = open.child(stage.config);
  await daemon.start();
  const made = await happen(stage, 5);
  await mailbox.until((mails) => mails.length === 1);
  await happenLater(stage, made);
  await eventually('two more wait', async () => (await stage.backlog.counts('oncall')).pending === 7);
  await daemon.kill();
  mailbox.answer = () => null;

  await open.child(stage.config).start();
  await mailbox.until((mails) => mails.length === 2);
  await eventually('the digest is noted', async () => (await stage.backlog.counts('oncall')).pending === 2);
  const [first, second] = mailbox.mails;
  expect(eventsOf(first ?? never())).toEqual(made.map(madeEventId));
  expect(second?.messageId).toBe(first?.messageId);
  expect(second?.subject).toBe(first?.subject);
  expect(second?.text).toBe(first?.text);
  expect(second?.html).toBe(first?.html);
});

function never(): never {
  throw new Error('there is no such mail');
}
