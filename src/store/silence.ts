import { Command, type Redis } from 'ioredis';
import { repeatTogether } from '../shared-timer.ts';

/**
 * Longest time that a connection may have an answer pending. A fork, swapping or a stop of 5 s must pass unnoticed; a master
 * that was failed over must be dropped within 15 s, also when its successor comes just after we have sent a command.
 */
const SILENCE_MS = 7_000;
const LOOK_EVERY_MS = 1_000;

/**
 * Ends a connection on which an answer is overdue, so that the client connects anew: to the same server when it is back, or to
 * its replacement. TCP does not report a server that is frozen, or behind a pulled cable. Unanswered commands are sent again
 * on the next connection, as after any other loss of it.
 *
 * A command has no timeout of its own: the client would still send an abandoned command once it is connected, and jobs would
 * be claimed that nobody waits for.
 *
 * It counts checks, not time: a process that was paused itself first reads the answers that have come meanwhile.
 */
export function leaveWhenSilent(redis: Redis, onSilent: (reason: string) => void = () => undefined): void {
  let stop = (): void => undefined;
  redis.on('connect', () => {
    const { stream } = redis;
    let checks = 0;
    stream.on('data', () => {
      checks = 0;
    });
    stop();
    stop = repeatTogether(LOOK_EVERY_MS, () => {
      const command = redis.commandQueue.peekFront()?.command;
      checks = command === undefined ? 0 : checks + 1;
      const blockMs = command instanceof Command ? (command.extractBlockingTimeout() ?? 0) : 0;
      const allowedMs = SILENCE_MS + blockMs;
      if (checks * LOOK_EVERY_MS < allowedMs) return;
      stop();
      const reason = `no answer for ${allowedMs / 1_000} s`;
      onSilent(reason);
      stream.destroy(new Error(reason));
    });
  });
  redis.on('close', () => stop());
}
