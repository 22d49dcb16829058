import type { Directory } from '../domain/transfers/chains.ts';
import type { RelayStores } from '../queues/deliveries/relay-parts.ts';
import type { AnswerStore } from '../store/answers.ts';
import type { RedisClient } from '../store/commands.ts';

/** What operators see and act with, whether they ask a running daemon or the command line: its own stores. */
export type OperationParts = {
  redis: RedisClient;
  /** What chains and tokens are called, as the daemon knew it last. */
  directory: Directory;
  stores: RelayStores & { answers: AnswerStore };
};

/** What was asked for is not there: the message says what was found and what is known. */
export class UnknownError extends Error {
  override readonly name = 'UnknownError';
}

/** What was asked for cannot be done as things stand: the message says why, and what would help. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}
