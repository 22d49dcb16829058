import { describe, expect, inject, test } from 'vitest';
import { account } from '../../demo/account.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { logEntries } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { slackOf } from '../support/slow-machine.ts';
import { endsOf, lastReported } from '../support/statuses.ts';

const { later, started, child } = opening();

/** Far less than the offset of the one clock, and more than the difference of the clocks of one machine. */
const CLOCKS_MS = 2_000;

describe('a daemon whose clock is 30 s off', () => {
  test('shares its work with one whose clock is right, and the events match the answers', async () => {
    const sandbox = await started(new Sandbox({ seed: 5, wallets: 4, transfersPerSecond: 0, timeScale: 20 }));
    const hook = await started(new TestReceiver());
    const cameMs = new Map<string, number>();
    const subjects = sandbox.subjects();
    const config = {
      baseUrl: sandbox.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [
        {
          name: 's',
          wallets: subjects.wallets,
          quotes: subjects.quotes,
          gaslessJobs: subjects.gaslessJobs,
          vaults: subjects.vaults,
          receivers: ['hook'],
        },
      ],
    };
    const ahead = child(config, ['--import', new URL('../support/clock-ahead.ts', import.meta.url).pathname]);
    await ahead.start();
    const right = child(config);
    await right.start();
    const watchedFromMs = Date.now();
    sandbox.setPace(3);
    await hook.until((events) => {
      for (const { id } of events) if (!cameMs.has(id)) cameMs.set(id, Date.now());
      return events.length >= 80;
    });
    sandbox.setPace(0);
    await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0);
    const ends = endsOf(sandbox.transitions(), watchedFromMs);
    await hook.until((events) => {
      const reported = lastReported(events);
      return [...ends].every(([subject, status]) => reported.get(subject) === status);
    });
    // Transfers born while the daemons were starting may be history for them.
    const born = new Set(
      sandbox
        .transitions()
        .filter(({ from, at }) => from === null && at > watchedFromMs + 1_000)
        .map(({ subject }) => subject),
    );
    const isWatched = (subject: string): boolean => subject.startsWith('intent:') && born.has(subject);
    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    later(() => disconnect(redis));
    const [entries, showings] = [await logEntries(redis, new Keys(config.prefix)), sandbox.showings()];
    const sums = account({
      transitions: sandbox.transitions(),
      showings,
      events: hook.events.filter((event) => isWatched(event.data.subject.id)),
      isWatched,
      rules: { slackMs: slackOf({ entries, showings }) },
    });
    expect(ahead.lines.filter((line) => String(line.msg).includes('clock of this machine')).length).toBe(1);
    expect(sums.problems).toEqual([]);
    expect(sums.shown).toBeGreaterThan(25);
    // An event made by the wrong clock would have a time after its arrival, and a late notification.
    for (const { id, timestamp, data } of hook.events) {
      const atMs = cameMs.get(id);
      if (atMs === undefined) continue;
      expect(Date.parse(timestamp)).toBeLessThan(atMs + CLOCKS_MS);
      const latestSeconds = (atMs + CLOCKS_MS) / 1_000 - (data.upstreamUpdatedAt ?? 0);
      expect(data.detectionDelaySeconds ?? 0).toBeLessThan(latestSeconds);
    }
  });
});
