import type { Answering } from '../control/answer-log.ts';
import type { RequestLog } from '../control/request-log.ts';
import type { Spoilings } from '../faults/fault-hooks.ts';
import type { Faults } from '../faults/faults.ts';

/** Shared dependencies of the client ports: log of requests and answers, the faults, and the clock. */
export type PortDeps = {
  answering: Answering;
  requests: RequestLog;
  faults: Faults;
  spoilings: Spoilings;
  nowMs: () => number;
};
