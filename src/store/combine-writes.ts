import type { Redis } from 'ioredis';

/**
 * Sends the commands of one turn of the event loop together: hundreds of concurrent polls cost a fraction of the writes.
 * Writes keep their order and leave before the turn ends.
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
