import { setTimeout as wait } from 'node:timers/promises';
import { between, chance, pick, type Random, randomStream } from '../../sandbox/world/random.ts';
import type { RedisProcess } from '../support/redis-process.ts';
import type { ChaosDaemon } from './daemon.ts';
import type { MailServer } from './mail-server.ts';
import { BAD_MOODS, type MoodyReceiver } from './receiver.ts';
import type { Disruption } from './reckoning.ts';

/** A process that stalls for so long, in ms, is slow, not dead: nothing may be reported twice because of it. */
const STALL_MS = [1_000, 6_000] as const;
const STALL = 'is frozen';

/** True when the victim was only slow for a while, and lost none of its work. */
export function isStall({ what }: Disruption): boolean {
  return what === STALL;
}

/** Share of stalls among the disruptions of Redis; the rest are kills. */
const FROZEN = 0.5;

/** The victims of disruptions. */
export type Victims = {
  daemons: readonly ChaosDaemon[];
  redis: RedisProcess;
  mailServer: MailServer;
  receivers: readonly MoodyReceiver[];
};

/** Shares among the disruptions of a daemon; the rest are SIGTERMs. */
const STOPPED = 0.25;
const KILLED = 0.55;
const KILLED_WHILE_STARTING = 0.2;

/**
 * Disturbs each victim independently at random times until the end, then restores it. The seed decides the acts and waits; the
 * machine decides their effects.
 */
export async function doMischief(
  victims: Victims,
  { seed, seconds }: { seed: number; seconds: number },
): Promise<Disruption[]> {
  const endMs = performance.now() + seconds * 1_000;
  const done: Disruption[] = [];

  async function during(what: string, victim: string, act: () => Promise<void>): Promise<void> {
    const fromMs = Date.now();
    await act();
    done.push({ what, victim, fromMs, toMs: Date.now() });
  }

  async function again(
    victim: string,
    meanSeconds: number,
    act: (random: Random) => Promise<void>,
  ): Promise<void> {
    const random = randomStream('chaos', seed, victim);
    for (;;) {
      const waitMs = between(random, 0.3, 1.7) * meanSeconds * 1_000;
      if (performance.now() + waitMs > endMs) return;
      await wait(waitMs);
      await act(random);
    }
  }

  const daemons = victims.daemons.map((daemon) =>
    again(daemon.name, 4, async (random) => {
      if (chance(random, STOPPED)) {
        await during(STALL, daemon.name, async () => {
          daemon.stop();
          await wait(between(random, ...STALL_MS));
          daemon.goOn();
        });
        return;
      }
      if (chance(random, KILLED / (1 - STOPPED))) {
        await during('kill -9', daemon.name, () => daemon.kill());
        await wait(between(random, 0, 1_500));
        if (chance(random, KILLED_WHILE_STARTING)) {
          const starting = daemon.launch(random);
          await wait(between(random, 100, 1_500));
          await during('kill -9 while it starts', daemon.name, () => daemon.kill());
          await starting;
        }
      } else {
        await during('SIGTERM', daemon.name, () => daemon.terminate());
        await wait(between(random, 0, 1_500));
      }
      await daemon.launch(random);
      await daemon.started();
    }),
  );
  const redis = again('redis', 9, (random) =>
    chance(random, FROZEN)
      ? during(STALL, 'redis', async () => {
          victims.redis.freeze();
          await wait(between(random, ...STALL_MS));
          victims.redis.thaw();
        })
      : during('kill -9', 'redis', async () => {
          await victims.redis.kill();
          await wait(between(random, 0, 2_000));
          await victims.redis.start();
        }),
  );
  const mail = again('mail server', 5, (random) =>
    during('away', 'mail server', async () => {
      await victims.mailServer.down();
      await wait(between(random, 500, 4_000));
      await victims.mailServer.up();
    }),
  );
  const receivers = victims.receivers.map((receiver) =>
    again(receiver.name, 3, (random) => {
      const mood = pick(random, BAD_MOODS);
      return during(mood, receiver.name, async () => {
        receiver.mood = mood;
        await wait(between(random, 500, 4_000));
        receiver.mood = 'well';
      });
    }),
  );
  await Promise.all([...daemons, redis, mail, ...receivers]);
  return done;
}
