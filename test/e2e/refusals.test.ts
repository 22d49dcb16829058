import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { isRunning, redisPid } from '../support/redis-pid.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const BROKEN = join(import.meta.dirname, '../fixtures/config/broken/many-problems-at-once');

test('a bad config ends with exit code 78 and every problem on stderr', async ({ onTestFinished }) => {
  const daemon = await new Stage(onTestFinished).intentwatch(['start', '--config', `${BROKEN}.yaml`]);
  expect(await daemon.ending()).toEqual({ code: 78, signal: null });
  const said = daemon.stderr.map((line) => line.slice(line.indexOf('many-problems-at-once.yaml')));
  expect(`${said.join('\n')}\n`).toBe(await readFile(`${BROKEN}.txt`, 'utf8'));
  expect(daemon.stdout).toEqual([]);
});

test('a command that does not exist is answered in three lines, with the one that was meant', async ({
  onTestFinished,
}) => {
  const program = await new Stage(onTestFinished).intentwatch(['trak']);
  expect(await program.ending()).toEqual({ code: 1, signal: null });
  expect(program.stderr.filter((line) => line !== '')).toEqual([
    "error: unknown command 'trak'",
    '(Did you mean track?)',
    expect.stringContaining('intentwatch --help lists the commands'),
  ]);
});

describe.concurrent('a daemon with its embedded Redis', () => {
  test('says of a dataDir that cannot be written to which it is, and what to do', async ({
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished);
    const taken = join(await stage.folder(), 'a-file');
    await writeFile(taken, '');
    const file = await stage.config({
      upstreamUrl: 'http://127.0.0.1:1',
      dataDir: taken,
      receiver: { url: 'http://127.0.0.1:1', secret: `whsec_${'A'.repeat(32)}` },
      subscriptions: [{ name: 'orders', intents: [`0x${'1'.repeat(64)}`], receivers: [RECEIVER_NAME] }],
    });
    const daemon = await stage.intentwatch(['start', '--config', file]);
    expect(await daemon.ending()).toEqual({ code: 1, signal: null });
    const said = new RegExp(
      `dataDir ${taken}: found .*EEXIST.*, expected one that this user may .*choose another`,
    );
    expect(daemon.stderr.join('\n')).toMatch(said);
  });

  test('refuses a dataDir that another one uses, with exit code 75, and leaves that one alone', async ({
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished);
    const [sandbox, receiver, dataDir] = await Promise.all([
      stage.sandbox({ seed: 5, timeScale: 20, wallets: 2 }),
      stage.receiver(),
      stage.folder(),
    ]);
    const { wallets } = await sandbox.subjects();
    const subscriptions = [{ name: 'treasury', wallets, receivers: [RECEIVER_NAME] }];
    const file = await stage.config({ upstreamUrl: sandbox.url, dataDir, receiver, subscriptions });
    const first = await stage.daemon(file);
    const second = await stage.intentwatch(['start', '--config', file]);
    expect(await second.ending()).toEqual({ code: 75, signal: null });
    expect(second.stderr.join('\n')).toContain(
      `dataDir ${dataDir} is in use by the daemon with pid ${first.pid}`,
    );
    await sandbox.setPace(5);
    await eventually('the first daemon goes on', () => receiver.received.length > 0);
    const pid = await redisPid(join(dataDir, 'redis.sock'));
    expect(await first.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(await isRunning(pid)).toBe(false);
  });

  test('takes its Redis along when it is killed, and the next start goes on where it stood', async ({
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished);
    const [sandbox, receiver, dataDir] = await Promise.all([
      stage.sandbox({ seed: 6, timeScale: 20, wallets: 2 }),
      stage.receiver(),
      stage.folder(),
    ]);
    const { intents, vaults } = await sandbox.subjects();
    const subscriptions = [{ name: 'orders', intents, vaults, receivers: [RECEIVER_NAME] }];
    const file = await stage.config({ upstreamUrl: sandbox.url, dataDir, receiver, subscriptions });
    const socket = join(dataDir, 'redis.sock');
    const first = await stage.daemon(file);
    await eventually('a webhook', () => receiver.received.length > 0);
    const before = await redisPid(socket);
    await first.end('SIGKILL');
    const killedMs = Date.now();
    const second = await stage.daemon(file);
    expect(await redisPid(socket)).not.toBe(before);
    await eventually('the first redis-server has ended', async () => !(await isRunning(before)));
    await eventually('webhooks go on', () =>
      receiver.received.some(({ receivedMs }) => receivedMs > killedMs),
    );
    // What the first was sending when it was killed comes when its place in the queue is known to be free.
    const missing = (): string[] => {
      const sequences = new Map<string, Set<number>>();
      for (const { data } of receiver.events()) {
        const found = sequences.get(data.subject.id) ?? new Set();
        sequences.set(data.subject.id, found.add(data.sequence));
      }
      return [...sequences].flatMap(([subject, found]) => (Math.max(...found) === found.size ? [] : subject));
    };
    await eventually('every event up to the last of its subject', () => missing().length === 0);
    expect(await second.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(missing()).toEqual([]);
  });
});
