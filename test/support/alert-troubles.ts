import {
  attempts,
  BOOKS_BREAKS,
  BOOKS_FAILURES,
  booksMails,
  CLOCKS_HELD,
  calls,
  DELIVERED,
  DIFFERING,
  DISPUTED,
  delays,
  EPOCH,
  FAILING,
  FOREIGN,
  GAPS,
  HEALTHY,
  JOB,
  LARGE_REMOVAL,
  lags,
  OVERDUE,
  oldest,
  PAUSED,
  PERSISTENT,
  POLLS,
  play,
  QUARANTINED,
  REACHABLE,
  READY,
  RELAY,
  RELAY_STOPPED,
  RELOADED,
  receiver,
  type Series,
  state,
  TIME,
  transfers,
  UNDELIVERED,
  UNPROVEN,
  WAIT,
  WAITING,
} from './played-rules.ts';

/** The difference of a troubled daemon from a healthy one for every alert, and the minutes until the alert fires. */
export const TROUBLES: Record<string, { differs: Series; afterMinutes: number }> = {
  IntentwatchMoneyStuck: { differs: { [transfers('refundable')]: '0x30 1x90' }, afterMinutes: 34 },
  IntentwatchOverdueRising: { differs: { [transfers('overdue')]: '1x60 8x60' }, afterMinutes: 68 },
  IntentwatchTransfersOverdue: { differs: { [oldest('overdue')]: '0x20 700+60x100' }, afterMinutes: 37 },
  IntentwatchDisputed: { differs: { [DISPUTED]: '3x30 4x90' }, afterMinutes: 32 },
  IntentwatchUnproven: { differs: { [UNPROVEN]: '0x30 1x90' }, afterMinutes: 32 },
  IntentwatchEventsUndelivered: { differs: { [UNDELIVERED]: '0+60x120' }, afterMinutes: 67 },
  IntentwatchDetectionSlow: { differs: { [delays('2')]: '0+9x120' }, afterMinutes: 27 },
  IntentwatchUpstreamLate: { differs: { [lags('5')]: '0+1x120' }, afterMinutes: 42 },
  IntentwatchDown: { differs: { [`up{${JOB}}`]: '0x120' }, afterMinutes: 2 },
  IntentwatchProcessDown: {
    differs: { 'up{job="intentwatch",instance="b:9464"}': '0x120' },
    afterMinutes: 6,
  },
  IntentwatchRedisUnreachable: { differs: { [REACHABLE]: '0x120' }, afterMinutes: 2 },
  IntentwatchNotReady: { differs: { [READY]: '0x120' }, afterMinutes: 2 },
  IntentwatchConfigReloadFailed: { differs: { [RELOADED]: '1x30 0x90' }, afterMinutes: 33 },
  IntentwatchLargeRemoval: { differs: { [LARGE_REMOVAL]: '0x30 4x90' }, afterMinutes: 33 },
  IntentwatchRedisNotPersistent: { differs: { [PERSISTENT]: '0x120' }, afterMinutes: 2 },
  IntentwatchRedisWentBack: { differs: { [EPOCH]: '1x30 2x90' }, afterMinutes: 32 },
  IntentwatchUpstreamUnreachable: { differs: { [state('unreachable')]: '1x120' }, afterMinutes: 3 },
  IntentwatchUpstreamUnauthorized: { differs: { [state('unauthorized')]: '1x120' }, afterMinutes: 2 },
  IntentwatchUpstreamThrottled: {
    differs: { [PAUSED]: '0+30x120' },
    afterMinutes: 25,
  },
  IntentwatchPollLag: { differs: { [OVERDUE]: '90x120' }, afterMinutes: 11 },
  IntentwatchNothingPolled: {
    differs: { [POLLS]: '0+300x20 6000x100', [WAIT]: '30x20 30+60x100', [PAUSED]: '0x120' },
    afterMinutes: 38,
  },
  IntentwatchSubjectsFailing: { differs: { [FAILING]: '2x120' }, afterMinutes: 31 },
  IntentwatchStatusSourcesDiffer: { differs: { [DIFFERING]: '0x30 1+1x90' }, afterMinutes: 48 },
  IntentwatchWalletsNotSwept: {
    differs: { [`intentwatch_wallets_never_swept{${JOB},state="broken"}`]: '0x10 3x110' },
    afterMinutes: 42,
  },
  IntentwatchInternalErrors: {
    differs: { [`intentwatch_internal_errors_total{${JOB},part="record"}`]: '0+1x120' },
    afterMinutes: 30,
  },
  IntentwatchPollsCrashing: {
    differs: { [`intentwatch_subjects_crashing{${JOB}}`]: '2x120' },
    afterMinutes: 2,
  },
  IntentwatchRepairs: {
    differs: { [`intentwatch_repairs_total{${JOB},what="poll-missing"}`]: '0x10 1x110' },
    afterMinutes: 12,
  },
  IntentwatchRelayAbsent: { differs: { [RELAY]: '0x120' }, afterMinutes: 2 },
  IntentwatchRelayStopped: { differs: { [RELAY_STOPPED]: '1x120' }, afterMinutes: 2 },
  IntentwatchEntriesQuarantined: { differs: { [QUARANTINED]: '0x10 1x110' }, afterMinutes: 12 },
  IntentwatchForeignEntries: { differs: { [FOREIGN]: '0x10 1x110' }, afterMinutes: 12 },
  IntentwatchDeadLetters: {
    differs: {
      [`intentwatch_deliveries_total{${JOB},receiver="backend",outcome="dead"}`]: '0x10 1x110',
    },
    afterMinutes: 12,
  },
  IntentwatchRecipientsRefused: {
    differs: { [`intentwatch_mail_recipients_refused_total{${JOB},receiver="backend"}`]: '0x10 1x110' },
    afterMinutes: 12,
  },
  IntentwatchDeliveriesFailing: { differs: { [attempts('failed')]: '0+3x120' }, afterMinutes: 15 },
  IntentwatchReceiverFailing: { differs: { [receiver('failing')]: '1x120' }, afterMinutes: 16 },
  IntentwatchReceiverDisabled: { differs: { [receiver('disabled')]: '1x120' }, afterMinutes: 2 },
  IntentwatchReceiverStuck: { differs: { [DELIVERED]: '7x120' }, afterMinutes: 61 },
  IntentwatchEventsDropped: {
    differs: { [`intentwatch_events_dropped_total{${JOB},receiver="backend"}`]: '0x10 4x110' },
    afterMinutes: 12,
  },
  IntentwatchSuspendedEventsDropped: {
    differs: { [`intentwatch_suspended_events_dropped_total{${JOB},reason="span-over"}`]: '0x10 4x110' },
    afterMinutes: 12,
  },
  IntentwatchGaugesMissing: {
    differs: { [`intentwatch_scrape_errors_total{${JOB},source="subjects"}`]: '0+4x120' },
    afterMinutes: 10,
  },
  IntentwatchClockOff: { differs: { [TIME]: '3.5+60x120' }, afterMinutes: 6 },
  IntentwatchClocksDisagree: { differs: { [CLOCKS_HELD]: '0x30 1x90' }, afterMinutes: 37 },
  IntentwatchProofsWaiting: { differs: { [WAITING]: '90000x120' }, afterMinutes: 16 },
  IntentwatchProofLogGap: { differs: { [GAPS]: '0x10 1x110' }, afterMinutes: 12 },
  IntentwatchBooksFailing: { differs: { [BOOKS_FAILURES]: '0+1x120' }, afterMinutes: 45 },
  IntentwatchBooksMailFailing: { differs: { [booksMails('failed')]: '0+0.5x120' }, afterMinutes: 30 },
  IntentwatchBooksBroken: { differs: { [BOOKS_BREAKS]: '0x10 1x110' }, afterMinutes: 12 },
  IntentwatchRpcFailing: { differs: { [calls('failed')]: '0+20x120' }, afterMinutes: 20 },
};

/** Plays the trouble of an alert, which must fire it once; returns the output of promtool where it does not. */
export async function playTrouble(alert: string): Promise<string> {
  const trouble = TROUBLES[alert];
  if (trouble === undefined) throw new Error(`found no trouble of ${alert}`);
  const firing = {
    expr: `count by (alertname) (ALERTS{alertstate="firing", alertname="${alert}"})`,
    minutes: trouble.afterMinutes,
    samples: [{ labels: `{alertname="${alert}"}`, value: 1 }],
  };
  return play({ ...HEALTHY, ...trouble.differs }, [firing]);
}
