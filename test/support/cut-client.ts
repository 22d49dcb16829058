import type { RedisClient } from '../../src/store/commands.ts';

/** Makes a client of Redis that is cut off after some commands (0: never), and counts its commands. */
export function cutClient(redis: RedisClient, after: number): { client: RedisClient; sent: () => number } {
  let done = 0;
  const client = new Proxy(redis, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => {
        if (after > 0 && done >= after) throw new Error('cut off');
        done += 1;
        return Reflect.apply(member, target, given);
      };
    },
  });
  return { client, sent: () => done };
}
