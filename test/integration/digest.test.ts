import { describe, expect, test } from 'vitest';
import { happen } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { madeEventId } from '../support/log-entries.ts';
import { mailStage, waiting } from '../support/mail-stage.ts';
import { eventsOf } from '../support/mailbox.ts';
import { opening } from '../support/opening.ts';

const open = opening();

describe('a receiver with a digest', () => {
  test('gets the events within its time as one mail, in order', async () => {
    const { mailbox, stage } = await mailStage(open, { digest: { every: '5s' } });
    await stage.start();
    const made = await happen(stage, 12, 4);
    await stage.drained('oncall');
    expect(mailbox.mails.map(eventsOf)).toEqual([made.map(madeEventId)]);
    const [mail] = mailbox.mails;
    expect(mail?.subject).toBe('Digest: 4 filled');
    expect(mail?.messageId).toMatch(/^<digest\.[0-9a-f]{40}\.oncall@intentwatch\.example\.com>$/);
    expect(mail?.references).toBeUndefined();
    expect(mail?.headers.get('auto-submitted')).toBe('auto-generated');
  });

  test('gets one at once when enough wait, and the next event waits again', async () => {
    const { mailbox, stage } = await mailStage(open, { digest: { every: '1h', max: 5 } });
    await stage.start();
    const made = await happen(stage, 6);
    await mailbox.until((mails) => mails.length === 1);
    await waiting(stage, 1);
    expect(mailbox.mails.map(eventsOf)).toEqual([made.slice(0, 5).map(madeEventId)]);
  });

  test('gets a single event as an ordinary mail', async () => {
    const { mailbox, stage } = await mailStage(open, { digest: { every: '1s' } });
    await stage.start();
    const [made] = await happen(stage, 1);
    await stage.drained('oncall');
    expect(mailbox.mails.map(({ messageId }) => messageId)).toEqual([
      `<${made && madeEventId(made)}.oncall@intentwatch.example.com>`,
    ]);
  });

  test('gets the events of one transfer together also where they come in order', async () => {
    const { mailbox, stage } = await mailStage(open, { digest: { every: '5s' }, ordering: 'subject' });
    await stage.start();
    const made = await happen(stage, 9, 3);
    await stage.drained('oncall');
    expect(mailbox.mails.map(eventsOf)).toEqual([made.map(madeEventId)]);
  });

  test('gets the events held during its pause in digests', async () => {
    const { mailbox, stage } = await mailStage(open, { digest: { every: '5s' } });
    await stage.start();
    await stage.states.disable('oncall');
    const made = await happen(stage, 20);
    await stage.states.enable('oncall');
    await stage.drained('oncall');
    expect(mailbox.mails.map(eventsOf)).toEqual([made.map(madeEventId)]);
  });
});

describe('a digest that the server refuses', () => {
  test('for now is sent again as it was, and each of its events knows both attempts', async () => {
    const { mailbox, stage } = await mailStage(open, { digest: { every: '1h', max: 5 } });
    mailbox.answer = () => (mailbox.mails.length === 0 ? { code: 451, text: '4.7.1 later' } : null);
    await stage.start();
    const made = await happen(stage, 5);
    await stage.drained('oncall');
    const [first, second, ...more] = mailbox.mails;
    expect(more).toEqual([]);
    expect(second?.messageId).toBe(first?.messageId);
    expect(second?.text).toBe(first?.text);
    for (const id of made.map(madeEventId)) {
      expect(await stage.deliveries.fact('oncall', id)).toMatchObject({
        outcome: 'delivered',
        tries: 2,
        attempts: [{ outcome: 'failed', smtpCode: 451 }, { outcome: 'delivered' }],
      });
    }
  });

  test("for good makes each of its events a dead letter with the server's message, and opened again they are sent", async () => {
    const { mailbox, stage } = await mailStage(open, { digest: { every: '1h', max: 5 } });
    mailbox.answer = () => ({ code: 554, text: '5.7.1 classified as spam' });
    await stage.start();
    const made = await happen(stage, 5);
    await eventually('they are dead', async () => (await stage.backlog.counts('oncall')).dead === 5);
    expect(await stage.backlog.counts('oncall')).toEqual({ pending: 0, dead: 5 });
    for (const id of made.map(madeEventId)) {
      const fact = await stage.deliveries.fact('oncall', id);
      expect(fact).toMatchObject({ outcome: 'dead', batch: null });
      expect(fact?.attempts).toMatchObject([{ outcome: 'rejected', reason: '554 5.7.1 classified as spam' }]);
    }
    mailbox.answer = () => null;
    await stage.states.disable('oncall');
    await stage.states.enable('oncall');
    await mailbox.until((mails) => mails.length === 2);
    await stage.drained('oncall');
    expect(eventsOf(mailbox.mails[1] ?? never())).toEqual(made.map(madeEventId));
  });
});

function never(): never {
  throw new Error('there is no such mail');
}
