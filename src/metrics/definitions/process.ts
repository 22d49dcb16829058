import { FILE_STATES, REMOVED_KINDS } from '../../config/sections/process.ts';
import { STORED_KINDS } from '../../store/stored.ts';
import { type Definition, SOURCES } from '../definition.ts';

/** Metrics of the process itself and of Redis. */
export const PROCESS = {
  buildInfo: {
    name: 'intentwatch_build_info',
    help: 'Always 1; the labels name the version and its Node.',
    type: 'gauge',
    labels: { version: 'one', node_version: 'one' },
  },
  time: {
    name: 'intentwatch_clock_timestamp_seconds',
    help: 'The clock of the process at the scrape, in seconds since 1970.',
    type: 'gauge',
    labels: {},
  },
  ready: {
    name: 'intentwatch_ready',
    help: '1 while the process is ready, as `/readyz` reports.',
    type: 'gauge',
    labels: {},
  },
  configReloaded: {
    name: 'intentwatch_config_last_reload_successful',
    help: '0 while the config that was read last is refused, and the one before goes on; 1 otherwise.',
    type: 'gauge',
    labels: {},
  },
  configReloadedAt: {
    name: 'intentwatch_config_last_reload_success_timestamp_seconds',
    help: 'When the config that runs was read, at the start or by a reload, in seconds since 1970.',
    type: 'gauge',
    labels: {},
  },
  configState: {
    name: 'intentwatch_config_state',
    help: '1 for what the config file is to the config that runs, 0 for the others: `changed` waits for a reload (`reload.mode: manual`), `held` for a confirmation.',
    type: 'gauge',
    labels: { state: FILE_STATES },
  },
  configRemoval: {
    name: 'intentwatch_config_large_removal',
    help: 'How many wallets, other named subjects and receivers the config file would remove while it is held for that, or the start has removed, until the next reload. 0 otherwise.',
    type: 'gauge',
    labels: { what: REMOVED_KINDS },
  },
  redisReachable: {
    name: 'intentwatch_redis_reachable',
    help: '1 while Redis answers on the connections of this process; 0 after 5 s without an answer.',
    type: 'gauge',
    labels: {},
  },
  redisPersistent: {
    name: 'intentwatch_redis_persistent',
    help: '1 when Redis stores its data on disk, in an append-only file or in dumps; 0 when it stores none, or fails to write. Absent where it does not report this. As of the last minute in which it was reachable.',
    type: 'gauge',
    labels: {},
    series: [],
  },
  dataEpoch: {
    name: 'intentwatch_data_epoch',
    help: 'The epoch of the data in Redis: 1, and one more after each time that Redis went back.',
    type: 'gauge',
    labels: {},
    series: [],
  },
  clocksHeld: {
    name: 'intentwatch_clocks_held',
    help: '1 while reminders and closings of the books wait, and nothing expires, as the clocks of the processes, Redis and the upstream do not agree; for an hour at most.',
    type: 'gauge',
    labels: {},
    series: [],
  },
  foreign: {
    name: 'intentwatch_foreign_entries_total',
    help: 'Entries in Redis that had another shape than this version writes, by what they should be. They were dropped or written anew.',
    type: 'counter',
    labels: { what: STORED_KINDS },
  },
  scrapeErrors: {
    name: 'intentwatch_scrape_errors_total',
    help: 'Times at which a source of gauges failed or took longer than 0.8 s, as all do while Redis is away; its gauges are then absent.',
    type: 'counter',
    labels: {
      source: SOURCES,
    },
  },
} as const satisfies Record<string, Definition>;
