import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { configYaml, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { Program } from '../support/program.ts';
import { testFolder } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const open = opening();
const MAIN = join(import.meta.dirname, '../../src/main.ts');
const COUNT = 24;

const walletOf = (index: number): string => `0x${(index + 1).toString(16).padStart(40, '0')}`;

/** With default settings, wallets leave by a slip in the file while transfers go on, and the process is killed meanwhile. */
test('eight of 24 wallets that are out of the file for a while lose nothing, through kill -9', async () => {
  const transfers = new Map<string, { wallet: string; status: string; updatedAt: number }>();
  const upstream = await open.started(
    new ScriptedUpstream(({ query }) => {
      const wallet = query.wallet?.toLowerCase();
      const shown = [...transfers].filter(([hash, one]) =>
        wallet === undefined ? hash === query.intentHash : wallet === one.wallet,
      );
      return {
        records: shown.map(
          ([hash, { status, updatedAt }]): JsonObject => intentRecord(hash, status, updatedAt),
        ),
      };
    }),
  );
  const [hook, operator] = [await open.started(new Hook()), await open.started(new Hook())];
  const wallets = Array.from({ length: COUNT }, (_, index) => walletOf(index));
  const [prefix, file] = [testPrefix(), join(await testFolder(open), 'intentwatch.yaml')];
  const write = async (some: readonly string[], more: object = {}): Promise<void> => {
    const text = configYaml({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: {
        backend: { url: hook.url, more: { concurrency: 1 } },
        operator: { url: operator.url, more: { events: ['intentwatch.*'] } },
      },
      subscriptions: [{ name: 'treasury', receivers: ['backend'], wallets: some }],
      // A slip that is not held: see reload.confirmAfter.
      more: { reload: { confirmAfter: '100%' }, ...more },
    });
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  };
  /** Each event once: an event in flight at a kill may come twice. */
  const once = () => [...new Map(hook.came.map(({ event }) => [event.id, event])).values()];
  const has = (count: number) => hook.until(() => once().length >= count);
  const set = (status: string): void => {
    const updatedAt = Math.floor(Date.now() / 1_000);
    for (const [index, wallet] of wallets.entries()) {
      transfers.set(hashOf(index + 1), { wallet, status, updatedAt });
    }
  };
  const start = async (): Promise<Program> => {
    const started = await Program.start(MAIN, ['start', '--config', file]);
    open.later(async () => started.end('SIGKILL'));
    await started.line(/"msg":"daemon.started"/);
    return started;
  };
  await write(wallets);
  let program = await start();
  const stored = (status: string) =>
    eventually(`all are ${status}`, () => {
      const lines = program.stdout.filter(
        (line) => line.includes('"event.committed"') && line.includes(`"status":"${status}"`),
      );
      return lines.length === COUNT;
    });
  await eventually('every wallet was polled', () => {
    const requests = new Set(upstream.requests.map(({ query }) => query.wallet?.toLowerCase()));
    return wallets.every((wallet) => requests.has(wallet));
  });
  set('pending');
  await has(COUNT);
  await write(wallets.slice(0, 16));
  await program.line(/"msg":"config.reloaded"/);
  set('filled');
  await stored('filled');
  await has(COUNT + 16);
  await program.end('SIGKILL');
  program = await start();
  set('settled');
  await stored('settled');
  await has(COUNT + 32);
  expect(once()).toHaveLength(COUNT + 32);
  await write(wallets);
  await has(3 * COUNT);
  expect(once()).toHaveLength(3 * COUNT);
  const late = once()
    .slice(COUNT + 32)
    .map(({ data }) => data);
  expect(late.every(({ suspended }) => suspended === true)).toBe(true);
  expect(late.map(({ status }) => status)).toEqual([
    ...Array.from({ length: 8 }, () => 'filled'),
    ...Array.from({ length: 8 }, () => 'settled'),
  ]);

  // Out for longer than the span.
  await write(wallets.slice(0, 1), { removal: { graceSpan: '2s' } });
  await operator.until((came) => came.length >= 1);
  expect(operator.came[0]?.event).toMatchObject({
    type: 'intentwatch.suspension_ended',
    data: { record: { reason: 'span-over', subjects: 23, events: 0 } },
  });
});
