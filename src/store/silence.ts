import { Command, type Redis } from 'ioredis';

/**
 * For how long a connection may owe an answer. A fork, swapping or a stop of 5 s must pass without a word; a master
 * that was failed over has to be left within 15 s, also when its successor comes just after we have sent a command.
 */
const SILENCE_MS = 7_000;
const LOOK_EVERY_MS = 500;

/**
 * Ends a connection on which an answer is overdue, so that the client connects anew: to the same server when it is
 * back, or to the one that has taken its place. TCP says nothing of a server that is frozen, or behind a cable that
 * was pulled. What was sent and not answered is sent again on the next connection, as after any other loss of it.
 *
 * A command has no timeout of its own: the client would send what it gave up all the same once it is connected, and
 * jobs would be taken that nobody waits for.
 *
 * Looks are counted, not time: a process that stood still itself first reads what has come meanwhile.
 */
export function leaveWhenSilent(redis: Redis, onSilent: (reason: string) => void = () => undefined): void {
  let timer: NodeJS.Timeout | undefined;
  redis.on('connect', () => {
    const { stream } = redis;
    let looks = 0;
    stream.on('data', () => {
      looks = 0;
    });
    clearInterval(timer);
    timer = setInterval(() => {
      const asked = redis.commandQueue.peekFront()?.command;
      looks = asked === undefined ? 0 : looks + 1;
      const blockMs = asked instanceof Command ? (asked.extractBlockingTimeout() ?? 0) : 0;
      const allowedMs = SILENCE_MS + blockMs;
      if (looks * LOOK_EVERY_MS < allowedMs) return;
      clearInterval(timer);
      const reason = `no answer for ${allowedMs / 1_000} s`;
      onSilent(reason);
      stream.destroy(new Error(reason));
    }, LOOK_EVERY_MS);
  });
  redis.on('close', () => clearInterval(timer));
}
