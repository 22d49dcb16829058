import type { SubjectId } from '../domain/subjects/subject.ts';

/**
 * Every key that Intentwatch has in Redis. All stand under one hash tag, so that scripts over several keys also run on
 * a Redis Cluster. BullMQ keeps its own keys under `queues`.
 */
export class Keys {
  /** `{intentwatch}`, with the configured prefix. */
  readonly root: string;

  constructor(prefix: string) {
    this.root = `{${prefix}}`;
  }

  /** Prefix of BullMQ's keys. */
  get queues(): string {
    return `${this.root}:q`;
  }

  /** hash: snapshot of a subject, whole or compact; how long it is stored says store/ended-subjects.ts. */
  subject(id: SubjectId | ''): string {
    return `${this.root}:subject:${id}`;
  }

  /** hash: root of a claim -> `<at ms>:<history before, seconds>:<served 0|1>`. Lives as long as the snapshot. */
  claims(id: SubjectId | ''): string {
    return `${this.root}:claims:${id}`;
  }

  /** hash: transfer -> when an answer first showed it of a transaction or quote, ms. Kept like the snapshot. */
  transfersOf(id: SubjectId): string {
    return `${this.root}:transfers-of:${id}`;
  }

  /** zset: where the events of a subject are in the log, see store/subject-entries.ts. Trimmed like the log. */
  subjectEntries(id: SubjectId): string {
    return `${this.root}:entries:${id}`;
  }

  /** zset: subject that nobody tracks any more -> since when it is in its state, ms, see store/ended-subjects.ts. */
  get ended(): string {
    return `${this.root}:ended`;
  }

  /** string: the commit counter. For ever. */
  get commit(): string {
    return `${this.root}:commit`;
  }

  /** stream: the event log, outbox and history at once. Trimmed to the retention. */
  get events(): string {
    return `${this.root}:events`;
  }

  /** string: the version of what is stored, as in store/schema-version.ts. For ever. */
  get schema(): string {
    return `${this.root}:schema`;
  }

  /** string: fencing token of the process that feeds the books. Expires with its lease. */
  get booksLease(): string {
    return `${this.root}:books:lease`;
  }

  /** string: the newest token of `booksLease`. For ever. */
  get booksFence(): string {
    return `${this.root}:books:fence`;
  }

  /** zset: `[entry, field, value, …]` of an entry of the log that could not be read -> its time, ms. Trimmed like the log. */
  get quarantine(): string {
    return `${this.root}:quarantine`;
  }

  /** zset: `<entry>|<reason>` of an event that no receiver gets -> 0. Trimmed like the log. */
  get unmatched(): string {
    return `${this.root}:unmatched`;
  }

  /** string: entry of the event log up to which such events are counted. For ever. */
  get unmatchedPlace(): string {
    return `${this.root}:unmatched:place`;
  }

  /**
   * hash: clock of the plan of an endpoint group. Its other keys begin with it: `:items`, `:resting`, `:fair`, … (see
   * commands/include/plan.lua). For ever.
   */
  plan(endpointGroup: string): string {
    return `${this.root}:plan:${endpointGroup}`;
  }

  /** zset: tracked subject of a kind -> when it was last looked at with success, ms, or since when it is tracked. */
  polledAt(endpointGroup: string, kind: string): string {
    return `${this.plan(endpointGroup)}:polled:${kind}`;
  }

  /** hash: how far the check of an endpoint group's plan has come in each of its keys. For ever. */
  repairCursors(endpointGroup: string): string {
    return `${this.plan(endpointGroup)}:checked`;
  }

  /** hash: what was seen of a stage on a route, `<source>:<destination>:<stage>`. Kept for the retention after the last addition. */
  learned(name: string): string {
    return `${this.root}:learned:${name}`;
  }

  /** set: the names of all `learned`. */
  get learnedNames(): string {
    return `${this.root}:learned-names`;
  }

  /** zset: subject with a snapshot -> when it was first seen or an event of it was made last, ms. An entry goes when that is made compact. */
  get changedSubjects(): string {
    return `${this.root}:changed`;
  }

  /**
   * hash: `<kind>|<status>` -> number of polled subjects that have a snapshot. Two more begin with it, `:open` and
   * `:open:<state>`: the transfers among them that have not come to an end (commands/include/open-transfers.lua).
   */
  get counts(): string {
    return `${this.root}:counts`;
  }

  /** hash: root -> since when a subscription names it, or it is tracked by itself, ms. An entry goes with that. */
  get wanted(): string {
    return `${this.root}:wanted`;
  }

  /**
   * hash: root that left the config -> since when (ms) and the roots that continue it, one a line. Kept for the retention.
   */
  get continued(): string {
    return `${this.wanted}:continued`;
  }

  /** hash: root that left the config -> its suspension, `out:<ms>` or `back:<ms>`, see store/suspensions.ts. */
  get suspended(): string {
    return `${this.wanted}:suspended`;
  }

  /** zset: suspension -> since when, ms; 0 while a sync makes it. A root whose suspension is not here is in the config. */
  get suspensions(): string {
    return `${this.wanted}:suspensions`;
  }

  /** zset: `<number> <entry> <event id> <root>` of an event that waits for a suspended root -> 0, in the order in which they came. */
  get withheld(): string {
    return `${this.wanted}:withheld`;
  }

  /** zset: `<ms> ` and a member of `withheld` that was dropped then -> 0. Kept for the retention. */
  get droppedWithheld(): string {
    return `${this.wanted}:dropped`;
  }

  /** hash: root -> `<at ms>:<the same moment on the upstream's clock, seconds>`, or that it is not settled (commands/since-2.lua). */
  get since(): string {
    return `${this.root}:since`;
  }

  /** hash: `chains` and `tokens` as the upstream lists them, JSON, and when each was read, ms. For ever. */
  get directory(): string {
    return `${this.root}:directory`;
  }

  /** string: a process asks the upstream for its lists, or did of late. Expires with the wait until the next may. */
  get directoryTurn(): string {
    return `${this.root}:directory:turn`;
  }

  /** hash: name of a receiver that was made through the API -> what is encrypted of it. An entry goes when it is removed. */
  get addedReceivers(): string {
    return `${this.root}:added-receivers`;
  }

  /** string: counts the changes of `addedReceivers`. For ever. */
  get addedReceiversVersion(): string {
    return `${this.root}:added-receivers:version`;
  }

  /** hash: subject that is tracked by itself -> its definition, JSON; kept for the retention after its tracking has ended. */
  get tracked(): string {
    return `${this.root}:tracked`;
  }

  /** zset: subject whose tracking by itself was ended -> when, ms. Kept for the retention. */
  get trackingEnded(): string {
    return `${this.root}:tracked:ended`;
  }

  /** hash: quote -> what was imported of it, JSON. An entry goes when it leaves the config and nobody tracks it. */
  get importedQuotes(): string {
    return `${this.root}:imported-quotes`;
  }

  /** hash: quote -> `<valid|invalid>:<fingerprint of what was verified>`. Same life as `importedQuotes`. */
  get verdicts(): string {
    return `${this.root}:verdicts`;
  }

  /** hash: intent -> what its quote promised, JSON, where that was imported and is valid. Same life as `importedQuotes`. */
  get promised(): string {
    return `${this.root}:promised`;
  }

  /** hash: route of two chains -> how long quotes say that a delivery takes, seconds, and `at`, when the last was noted. Kept for the retention after that. */
  get estimates(): string {
    return `${this.root}:estimates`;
  }

  /** hash: name -> definition of a subscription, JSON; one that left the config stays for its committed events. */
  get subscriptions(): string {
    return `${this.root}:subscriptions`;
  }

  /** hash: name -> definition of a route of the newest config, JSON. */
  get routes(): string {
    return `${this.root}:routes`;
  }

  /** hash: name -> definition of a receiver, JSON; one that left the config stays with its backlog. */
  get receivers(): string {
    return `${this.root}:receivers`;
  }

  /** hash: the newest config: its digest, and `generation`, the revision that counts what was synchronised. */
  get config(): string {
    return `${this.root}:config`;
  }

  /** string: the random key with which the digests of config files are made. For ever. */
  get fileDigestKey(): string {
    return `${this.root}:config:digest-key`;
  }

  /** string: a file that may remove much, by its digest. Expires after a day. */
  confirmation(digest: string): string {
    return `${this.root}:config:confirmed:${digest}`;
  }

  /** string: token of the process that makes Redis what its config wants. Expires with its lease. */
  get configLease(): string {
    return `${this.root}:config:lease`;
  }

  /** string: the newest token of `configLease`. For ever. */
  get configFence(): string {
    return `${this.root}:config:fence`;
  }

  /** hash: receiver -> entry of the event log up to which its deliveries were enqueued. */
  get cursors(): string {
    return `${this.root}:cursors`;
  }

  /** string: fencing token of the process that relays. Expires with its lease. */
  get relayLease(): string {
    return `${this.root}:relay:lease`;
  }

  /** string: the newest fencing token. For ever. */
  get relayFence(): string {
    return `${this.root}:relay:fence`;
  }

  /** Base of the keys of checks of what was stated about payments (see commands/include/check.lua). */
  get checks(): string {
    return `${this.root}:checks`;
  }

  /** string: `<name of the log>|<entry>` up to which what was stated has become checks. For ever. */
  get checksCursor(): string {
    return `${this.checks}:cursor`;
  }

  /** string: fencing token of the process that makes checks. Expires with its lease. */
  get checksLease(): string {
    return `${this.checks}:lease`;
  }

  /** string: the newest token of `checksLease`. For ever. */
  get checksFence(): string {
    return `${this.checks}:fence`;
  }

  /** hash: state of a receiver, what was reported of it, and how its last attempts went. For ever. */
  receiver(name: string): string {
    return `${this.root}:receiver:${name}`;
  }

  /** hash: facts of one delivery. Kept as long as its event is in the log, or as a dead letter. */
  delivery(receiver: string, delivery: string): string {
    return `${this.root}:delivery:${receiver}:${delivery}`;
  }

  /**
   * Prefix of strings, `<replay>:<subject>`: the newest delivery about a subject to a receiver with `ordering: subject`.
   * Kept as long as its event is in the log.
   */
  last(receiver: string): string {
    return `${this.root}:last:${receiver}:`;
  }

  /** zset: `<receiver> <replay>` of the replays that sent an event once more, all with score 0. Kept as long as the event is in the log. */
  replaysOf(eventId: string): string {
    return `${this.root}:replays-of:${eventId}`;
  }

  /** string: the newest entry of the event log that was trimmed. For ever. */
  get trimmed(): string {
    return `${this.root}:events:trimmed`;
  }

  /**
   * hash: the epoch of the data, which a restore makes larger, and how far it was counted (see store/epoch.ts). Scripts find it
   * by the name of the log. For ever.
   */
  get epoch(): string {
    return `${this.events}:epoch`;
  }

  /** hash: the time that has certainly passed, and what is known of the clocks (see store/confirmed-time.ts). For ever. */
  get clock(): string {
    return `${this.root}:clock`;
  }

  /** string: names this event log, so that a cursor of one that was lost is known as such. For ever. */
  get logName(): string {
    return `${this.root}:events:name`;
  }

  /** hash: consumer of the event log -> `<name of the log>|<entry up to which it has taken it>`. An entry goes when it is removed. */
  get consumers(): string {
    return `${this.root}:consumers`;
  }

  /** hash: a replay: its range, how far it is, what became of its deliveries. Kept for the retention, see `replayTimes`. */
  replay(id: string): string {
    return `${this.root}:replay:${id}`;
  }

  /** zset: replay id -> when it was requested, ms. */
  get replayTimes(): string {
    return `${this.root}:replay-times`;
  }

  /** zset: replay id -> time, ms, at which it was requested; those whose deliveries are not all opened. */
  get replays(): string {
    return `${this.root}:replays`;
  }

  /** hash: what was asked of the API under a name (`Idempotency-Key`), and the answer. Kept for a day. */
  answer(name: string): string {
    return `${this.root}:answer:${name}`;
  }

  /** zset: name of a request to the API -> when it was first used, ms. Kept for a day. */
  get answers(): string {
    return `${this.root}:answers`;
  }

  /** string: a session of the console that was ended. Kept for as long as it would have been good. */
  endedSession(id: string): string {
    return `${this.root}:session-ended:${id}`;
  }

  /** zset: delivery id -> when it was opened, ms, of a receiver's deliveries that are neither delivered nor dead. */
  pending(receiver: string): string {
    return `${this.root}:pending:${receiver}`;
  }

  /**
   * Base of the keys that say where each open delivery of a receiver is: `:due`, `:later`, `:batched`, `:sending` (see
   * commands/include/queue.lua). As long as there are some.
   */
  queue(receiver: string): string {
    return `${this.root}:queue:${receiver}`;
  }

  /** zset: process that sends deliveries -> until when it counts as living, ms. An entry goes when it has been taken over. */
  get senders(): string {
    return `${this.root}:senders`;
  }

  /** stream: receivers with something to do, for the processes that deliver. Its last ten thousand entries. */
  get wakes(): string {
    return `${this.root}:wakes`;
  }

  /** zset: delivery id -> since when, ms, it waits to be sent together with others. Kept for the retention. */
  waiting(receiver: string): string {
    return `${this.root}:waiting:${receiver}`;
  }

  /** hash: what is sent in one message: `members`, and the `leader` whose job sends it. Kept for the retention, see `batches`. */
  batch(receiver: string, batch: string): string {
    return `${this.root}:batch:${receiver}:${batch}`;
  }

  /** zset: batch of a receiver -> when it was frozen, ms. */
  batches(receiver: string): string {
    return `${this.root}:batches:${receiver}`;
  }

  /** zset: sweep whose pages are read back to back, as in the plan -> until when its turn lasts, ms. */
  get sweepTurns(): string {
    return `${this.root}:sweep-turns`;
  }

  /** zset: wallet that no sweep has read to its end -> 0 while one reads it, 1 after its cursor was refused. */
  get unswept(): string {
    return `${this.root}:unswept`;
  }

  /** list: deliveries of a receiver that will never be made and are not reported yet (see commands/include/dropped.lua). */
  dropped(receiver: string): string {
    return `${this.root}:dropped:${receiver}`;
  }

  /** zset: delivery id -> time of death, ms, of a receiver's dead letters. Trimmed to the retention. */
  dead(receiver: string): string {
    return `${this.root}:dead:${receiver}`;
  }

  /**
   * hash: subject of the daemon's own events (`intentwatch:storage`) -> how many were made, `<subject>|last` -> what the
   * newest reports, and `<subject>|once` -> what is not reported again. For ever.
   */
  get reports(): string {
    return `${this.root}:reports`;
  }

  /** hash: state of one of the upstream's endpointGroups, and its pause (see commands/include/endpoint-group.lua). For ever. */
  endpointGroup(endpointGroup: string): string {
    return `${this.root}:endpointGroup:${endpointGroup}`;
  }

  /** zset: records of an endpoint group that are too large to be read -> when that was seen last, ms. Bounded, and kept 30 days. */
  tooLarge(endpointGroup: string): string {
    return `${this.root}:too-large:${endpointGroup}`;
  }

  /**
   * hash: the present sweep over the pages of a wallet, of all of them (`all`) or of those in one status: `id`, `state`,
   * the `page` that was queued last, the limit of its request, and a field per cursor that it followed. Outlives a sweep's interval.
   */
  sweep(wallet: SubjectId, listing: string): string {
    return `${this.root}:sweep:${listing}:${wallet}`;
  }

  /** hash: what was observed of a wallet's pages: `looked:<listing>`, `pages`, … Kept for the retention after it is not watched any more. */
  wallet(wallet: SubjectId): string {
    return `${this.root}:pages:${wallet}`;
  }

  /** hash: transfer of a wallet that has not ended -> its status and when it was last seen. Kept as long as what was observed. */
  open(wallet: SubjectId): string {
    return `${this.root}:open:${wallet}`;
  }

  /** string: a poll of its own was requested of late. Expires within seconds. */
  rechecked(id: string): string {
    return `${this.root}:rechecked:${id}`;
  }
}
