import type { Redis } from 'ioredis';

/**
 * Joins the writes of one turn of the event loop, for a fraction of their cost. They retain their order, and that turn.
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
    // Node replaces `write` when the server closes its side: a property that cannot be replaced would end the process.
    Object.defineProperty(stream, 'write', { value: corked, configurable: true, writable: true });
  });
}
