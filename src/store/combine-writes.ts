import type { Redis } from 'ioredis';

/**
 * Has the commands of one turn of the event loop leave together: a poll beside hundreds of others costs a fraction of the
 * writes. What is written keeps its order, and leaves before the turn ends.
 */
export function combineWrites(redis: Redis): void {
  redis.on('connect', () => {
    const { stream } = redis;
    const write = stream.write.bind(stream);
    let isCorked = false;
    const corked = (...args: Parameters<typeof write>): boolean => {
      if (!isCorked) {
        isCorked = true;
        stream.cork();
        process.nextTick(() => {
          isCorked = false;
          stream.uncork();
        });
      }
      return write(...args);
    };
    // Node puts another in its place when the server closes its side: one that cannot be replaced would end the process.
    Object.defineProperty(stream, 'write', { value: corked, configurable: true, writable: true });
  });
}
