import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { embeddedSocket } from '../../src/store/embedded-files.ts';
import { Keys } from '../../src/store/keys.ts';
import { DAY_MS, FIRST_MS, reportedEvent } from '../support/books-stage.ts';
import { startDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { hashOf, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const REPORT = z.looseObject({ state: z.string(), exceptions: z.array(z.looseObject({ kind: z.string() })) });

const CLAIM_KEYS = JSON.stringify([`s|intent:${hashOf(77)}`]);

const FILLED = { transfer: 1, sequence: 1, status: 'filled', amount: 1_000_000n };

const MORE_ENDPOINTS = {
  chains: { 42161: { rpc: [{ name: 'own', url: 'http://127.0.0.1:9/' }] } },
};

test('a closed day is judged by the settings that it was closed with', async () => {
  const upstream = await started(new ScriptedUpstream(() => ({ records: [] })));
  const hook = await started(new Hook());
  const dataDir = await mkdtemp(join(tmpdir(), 'intentwatch-books-'));
  later(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  const running = async (more: object) =>
    startDaemon({
      baseUrl: upstream.url,
      redisUrl: '',
      prefix: '',
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: [hashOf(77)], receivers: ['hook'] }],
      // An embedded Redis, and the books in a file beside it.
      more: { redis: undefined, dataDir, ...more },
    });
  // A transfer was delivered two days ago, and its receiver is notified only now.
  const day = new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10);
  const seenMs = Date.parse(day) - FIRST_MS + 2_000;
  const event = reportedEvent({ ...FILLED, atMs: seenMs - 1_000, seenMs });
  const withoutBooks = await running({});
  const redis = new Redis(await embeddedSocket(dataDir));
  const entry = {
    kind: 'event',
    subject: event.data.subject.id,
    event: JSON.stringify(event),
    claimKeys: CLAIM_KEYS,
  };
  await redis.xadd(new Keys('intentwatch').events, `${FIRST_MS + seenMs}-0`, ...Object.entries(entry).flat());
  await redis.quit();
  await hook.until((came) => came.length === 1);
  await withoutBooks.daemon.close();

  const exceptionsWith = async (more: object) => {
    const { daemon } = await running(more);
    const exceptions = await eventually('the day is closed', async () => {
      const answer = await fetch(`${daemon.url}/api/v1/books/${day}`);
      const report = answer.ok ? REPORT.parse(await answer.json()) : null;
      return report?.state === 'closed' && report.exceptions;
    });
    await daemon.close();
    return exceptions;
  };
  const judged = await exceptionsWith({ books: { closeAfter: '1h' } });
  expect(judged.map(({ kind }) => kind)).toEqual(['undelivered']);
  expect(await exceptionsWith({ books: { closeAfter: '2d' } })).toEqual(judged);
  expect(await exceptionsWith({ books: { closeAfter: '1h' }, ...MORE_ENDPOINTS })).toEqual(judged);
});
