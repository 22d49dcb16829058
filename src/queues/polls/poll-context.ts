import type { Logger } from 'pino';
import type { FinishedStatuses } from '../../domain/cadence/next-poll.ts';
import type { StatusSource } from '../../domain/subjects/kinds.ts';
import type { Signals } from '../../signals.ts';
import type { RedisClient } from '../../store/commands.ts';
import type { ActingClock } from '../../store/confirmed-time.ts';
import type { HealthStore } from '../../store/health.ts';
import type { ImportedQuotes } from '../../store/imported-quotes.ts';
import type { Keys } from '../../store/keys.ts';
import type { Stores } from '../../store/stores.ts';
import type { UpstreamClient } from '../../upstream/client/client.ts';
import type { Learning } from './learning.ts';
import type { SeenPages } from './seen-pages.ts';
import type { Sweeps } from './sweeps.ts';

/** Stores that polls use. */
export type PollStores = Stores & {
  importedQuotes: ImportedQuotes;
  sweeps: Sweeps;
  health: HealthStore;
};

/** Settings of commits. `finished`: statuses that end the tracking of a subject. */
export type CommitRules = {
  confirmAfterMs: number;
  finished: FinishedStatuses;
  statusSource: StatusSource;
};

/** Settings of polls. `fullSweepEveryMs`: least time between two reads of all pages of a wallet; `requestsPerSecond`: budget. */
export type PollRules = CommitRules & {
  fullSweepEveryMs: number;
  requestsPerSecond: number;
  retentionMs: number;
};

/**
 * Dependencies of commits, which store the snapshot of a subject and its event in one step. `learning`: observed durations of
 * transfers; `clocks`: whether Redis time can be trusted.
 */
export type CommitContext = {
  stores: Pick<Stores, 'plan' | 'subjects' | 'registry'>;
  rules: CommitRules;
  learning: Learning;
  clocks: ActingClock;
  signals: Signals;
};

/** Dependencies of polls. */
export type PollContext = {
  redis: RedisClient;
  keys: Keys;
  stores: PollStores;
  client: UpstreamClient;
  pages: SeenPages;
  rules: PollRules;
  learning: Learning;
  clocks: ActingClock;
  signals: Signals;
  log: Logger;
};
