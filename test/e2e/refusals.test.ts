import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const BROKEN = join(import.meta.dirname, '../fixtures/config/broken/many-problems-at-once');

test('a bad config ends with exit code 78 and every problem on stderr', async ({ onTestFinished }) => {
  const daemon = await new Stage(onTestFinished).intentwatch(['start', '--config', `${BROKEN}.yaml`]);
  expect(await daemon.ending()).toEqual({ code: 78, signal: null });
  const lines = daemon.stderr.map((line) => line.slice(line.indexOf('many-problems-at-once.yaml')));
  expect(`${lines.join('\n')}\n`).toBe(await readFile(`${BROKEN}.txt`, 'utf8'));
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

test('an error about a read-only dataDir names it and the remedy', async ({ onTestFinished }) => {
  const stage = new Stage(onTestFinished);
  const occupied = join(await stage.folder(), 'a-file');
  await writeFile(occupied, '');
  const file = await stage.config({
    upstreamUrl: 'http://127.0.0.1:1',
    dataDir: occupied,
    receiver: { url: 'http://127.0.0.1:1', secret: `whsec_${'A'.repeat(32)}` },
    subscriptions: [{ name: 'orders', intents: [`0x${'1'.repeat(64)}`], receivers: [RECEIVER_NAME] }],
  });
  const daemon = await stage.intentwatch(['start', '--config', file]);
  expect(await daemon.ending()).toEqual({ code: 1, signal: null });
  const lines = new RegExp(
    `dataDir ${occupied}: found .*EEXIST.*, expected one that this user may .*choose another`,
  );
  expect(daemon.stderr.join('\n')).toMatch(lines);
});
