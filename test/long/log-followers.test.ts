import { describe, expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { type Answered, type Call, callApi } from '../support/api-stage.ts';
import { deliveryStage, hourOfEvents } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';

const open = opening();

const EVENTS = 5_000;
const CUTS = 50;
const TOKEN = 'a-token-that-does-all';

type Seen = { id: string; data: { subject: { id: string }; sequence: number } };

/** A daemon, and a function that appends the events in parts while they are followed. */
async function stage() {
  const hook = await open.started(new Hook());
  const server = { host: '127.0.0.1', port: 0, token: TOKEN };
  const { redis, keys, start } = await deliveryStage(
    open,
    { hook: { hook, more: { events: ['none.*'] } } },
    { server },
  );
  const { daemon } = await start();
  const made = hourOfEvents(EVENTS, { fromMs: (await redisTimeMs(redis)) + 1_000, transfers: 100 });
  const append = async (): Promise<void> => {
    for (let from = 0; from < made.length; from += 250)
      await appendEvents(redis, keys, made.slice(from, from + 250));
  };
  return { url: daemon.url, made: made.map(madeEventId), append };
}

function expectAllOnce(seen: readonly Seen[], made: readonly string[]): void {
  expect(seen.map(({ id }) => id).toSorted()).toEqual(made.toSorted());
  const bySubject = Map.groupBy(seen, ({ data }) => data.subject.id);
  for (const some of bySubject.values()) {
    expect(some.map(({ data }) => data.sequence)).toEqual(some.map((_, index) => index + 1));
  }
}

describe(`a consumer that is cut ${CUTS} times during ${EVENTS} events has every one once, in order per subject`, () => {
  test('by the stream, with Last-Event-ID', async () => {
    const { url, made, append } = await stage();
    const seen: Seen[] = [];
    let last = '';
    const appended = append();
    for (let cut = 0; seen.length < EVENTS; cut += 1) {
      const most = cut < CUTS ? Math.floor(((cut + 1) * EVENTS) / (CUTS + 1)) : EVENTS;
      const abort = new AbortController();
      const headers: Record<string, string> = { authorization: `Bearer ${TOKEN}` };
      if (last !== '') headers['last-event-id'] = last;
      const answer = await eventually('the stream', async () => {
        const found = await fetch(`${url}/api/v1/events/stream?since=1h&type=intent.*`, {
          headers,
          signal: abort.signal,
        });
        return found.status === 503 ? null : found;
      });
      expect(answer.status).toBe(200);
      let text = '';
      for await (const part of answer.body ?? []) {
        text += Buffer.from(part).toString('utf8');
        const blocks = text.split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) {
          const [, id, data] = /^id: (.*)\nevent: .*\ndata: (.*)$/.exec(block) ?? [];
          if (id === undefined || data === undefined || seen.length >= most) continue;
          seen.push(JSON.parse(data));
          last = id;
        }
        if (seen.length >= most) break;
      }
      abort.abort();
    }
    await appended;
    expectAllOnce(seen, made);
  });

  test.each([
    'a cursor of its own',
    'a cursor that is stored for it',
  ])('by pulling, with %s', async (whose) => {
    const { url, made, append } = await stage();
    // A busy Redis may take longer than the API waits for it.
    const called = (call: Call): Promise<Answered> =>
      eventually('an answer', async () => {
        const answer = await callApi(url, call);
        return answer.status === 503 ? null : answer;
      });
    const isStored = whose.endsWith('for it');
    const seen: Seen[] = [];
    let cursor = '';
    let cuts = 0;
    const appended = append();
    while (seen.length < EVENTS) {
      const own = cursor === '' ? '' : `&after=${cursor}`;
      const path = `/events?limit=50&wait=5s&type=intent.*${isStored ? '&consumer=ledger' : own}`;
      if (cuts < CUTS && seen.length >= ((cuts + 1) * EVENTS) / (CUTS + 1)) {
        cuts += 1;
        // Cut off in the middle of an answer, which is not used.
        const abort = new AbortController();
        const headers = { authorization: `Bearer ${TOKEN}` };
        await fetch(`${url}/api/v1${path}`, { headers, signal: abort.signal });
        abort.abort();
        continue;
      }
      const { status, body } = await called({ path, token: TOKEN });
      expect(status).toBe(200);
      for (const event of Object(body).events) seen.push(event);
      cursor = String(body.next);
      // Stored and acknowledged in one step, as a consumer does that stores its effects and its place together.
      if (isStored)
        await called({ method: 'POST', path: '/consumers/ledger/ack', token: TOKEN, body: { cursor } });
    }
    await appended;
    expect(cuts).toBe(CUTS);
    expectAllOnce(seen, made);
  });
});
