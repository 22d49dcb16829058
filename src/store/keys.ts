import { type EndpointGroup, endpointGroupOf, type StatusSource } from '../domain/subjects/kinds.ts';
import type { SubjectId } from '../domain/subjects/subject.ts';

/** The keys begin with it: it is set before they are. */
class HashTag {
  /** Prefix of all keys, with the braces of the hash tag. */
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = `{${prefix}}`;
  }
}

/**
 * All keys of Intentwatch in Redis, under one hash tag, as scripts on a Redis Cluster need. BullMQ has its own under `queues`.
 */
export class Keys extends HashTag {
  /** Source of the status of transfers: it decides in which plan they are. */
  readonly statusSource: StatusSource;
  /** Endpoint group of the plan in which a subject is. */
  readonly groupOf = (subject: SubjectId): EndpointGroup => endpointGroupOf(subject, this.statusSource);
  /** The plan in which a subject is. */
  readonly planOf = (subject: SubjectId): string => this.plan(this.groupOf(subject));

  constructor(prefix: string, statusSource: StatusSource = 'v1') {
    super(prefix);
    this.statusSource = statusSource;
  }

  readonly queues = `${this.prefix}:q`;

  /** hash: snapshot of a subject, whole or compact; store/ended-subjects.ts describes its retention. */
  subject(id: SubjectId | ''): string {
    return `${this.prefix}:subject:${id}`;
  }

  /** hash: subscription key of a claim -> `<at ms>:<history before, seconds>:<served 0|1>`. Stored like the snapshot. */
  claims(id: SubjectId | ''): string {
    return `${this.prefix}:claims:${id}`;
  }

  /** hash: transfer -> when a response first showed it for a transaction or quote, ms. Stored like the snapshot. */
  transfersOf(id: SubjectId): string {
    return `${this.prefix}:transfers-of:${id}`;
  }

  /** zset: places of a subject's events in the log, see store/event-log.ts. Trimmed like the log. */
  subjectEntries(id: SubjectId): string {
    return `${this.prefix}:entries:${id}`;
  }

  /** zset: subject that nobody tracks any more -> start of its state, ms, see store/ended-subjects.ts. */
  readonly ended = `${this.prefix}:ended`;

  /** hash: ended subject that only wallets claim -> its compact state and claims, both packed (commands/include/compact.lua). */
  readonly compact = `${this.prefix}:compact`;

  /** string: the commit counter. Never expires. */
  readonly commit = `${this.prefix}:commit`;

  /** stream: the event log, outbox and history at once. Trimmed to the retention. */
  readonly events = `${this.prefix}:events`;

  /** string: version of the stored data, as in store/schema-version.ts. Never expires. */
  readonly schema = `${this.prefix}:schema`;

  /** string: fencing token of the process that feeds the books. Expires with its lease. */
  readonly booksLease = `${this.prefix}:books:lease`;

  /** string: the newest token of `booksLease`. Never expires. */
  readonly booksFence = `${this.prefix}:books:fence`;

  /** zset: `[entry, field, value, …]` of an entry of the log that could not be read -> its time, ms. Trimmed like the log. */
  readonly quarantine = `${this.prefix}:quarantine`;

  /** zset: `<entry>|<reason>` of an event that no receiver gets -> 0. Trimmed like the log. */
  readonly unmatched = `${this.prefix}:unmatched`;

  /** string: entry of the event log up to which such events are counted. Never expires. */
  readonly unmatchedPlace = `${this.prefix}:unmatched:place`;

  /**
   * hash: clock of the plan of an endpoint group. Its other keys begin with it: `:items`, `:resting`, `:fair`, … (see
   * commands/include/plan.lua). Never expires.
   */
  plan(endpointGroup: string): string {
    return `${this.prefix}:plan:${endpointGroup}`;
  }

  /** zset: tracked subject of a kind -> its last successful poll, ms, or the start of its tracking. */
  polledAt(endpointGroup: string, kind: string): string {
    return `${this.plan(endpointGroup)}:polled:${kind}`;
  }

  /** hash: progress of the check of an endpoint group's plan in each of its keys. Never expires. */
  repairCursors(endpointGroup: string): string {
    return `${this.plan(endpointGroup)}:checked`;
  }

  /** hash: observations of a stage, `<source>:<destination>:<stage>`. Stored for the retention after the last addition. */
  learned(name: string): string {
    return `${this.prefix}:learned:${name}`;
  }

  /** set: the names of all `learned`. */
  readonly learnedNames = `${this.prefix}:learned-names`;

  /** zset: subject with a snapshot -> when it was first seen or its last event was made, ms. Removed when it is made compact. */
  readonly changedSubjects = `${this.prefix}:changed`;

  /**
   * hash: `<kind>|<status>` -> number of polled subjects with a snapshot. Two more keys begin with it, `:open` and
   * `:open:<state>`: the open transfers among them (commands/include/open-transfers.lua).
   */
  readonly counts = `${this.prefix}:counts`;

  /** hash: subscription key -> since when it is named, or tracked by itself, ms. Removed when neither is so. */
  readonly wanted = `${this.prefix}:wanted`;

  /** hash: removed subscription key -> since when (ms) and the keys that continue it, one a line. Stored for the retention. */
  readonly continued = `${this.wanted}:continued`;

  /** hash: subscription key that began anew beside keys that continue it -> the newest entry of the log then. */
  readonly begun = `${this.wanted}:begun`;

  /** hash: removed subscription key -> its suspension, `out:<ms>` or `back:<ms>`, see store/suspensions.ts. */
  readonly suspended = `${this.wanted}:suspended`;

  /** zset: suspension -> since when, ms; 0 while a sync makes it. A key whose suspension is missing here is in the config. */
  readonly suspensions = `${this.wanted}:suspensions`;

  /** zset: `<number> <entry> <event id> <key>` of an event that waits for a suspended key -> 0, in the order of arrival. */
  readonly withheld = `${this.wanted}:withheld`;

  /** zset: `<ms> ` and a member of `withheld` that was dropped then -> 0. Stored for the retention. */
  readonly droppedWithheld = `${this.wanted}:dropped`;

  /**
   * hash: subscription key -> `<at ms>:<the same on the upstream's clock, seconds>`, or that it is not settled
   * (commands/resolve-subscription-start-2.lua).
   */
  readonly since = `${this.prefix}:since`;

  /** hash: `chains` and `tokens` as the upstream lists them, JSON, and the time of each read, ms. Never expires. */
  readonly directory = `${this.prefix}:directory`;

  /** hash: digest of a deployment's `baseUrl` and a domain -> 1: a quote has verified under it. Never expires. */
  readonly quoteDomains = `${this.prefix}:quote-domains`;

  /** string: a process fetches the upstream's lists, or did recently. Expires with the wait for the next fetch. */
  readonly directoryTurn = `${this.prefix}:directory:turn`;

  /** hash: name of a receiver that was made through the API -> its encrypted part. Removed with the receiver. */
  readonly addedReceivers = `${this.prefix}:added-receivers`;

  /** string: number of changes of `addedReceivers`. Never expires. */
  readonly addedReceiversVersion = `${this.prefix}:added-receivers:version`;

  /** hash: subject that is tracked by itself -> its definition, JSON; stored for the retention after its tracking has ended. */
  readonly tracked = `${this.prefix}:tracked`;

  /** zset: subject whose tracking by itself was ended -> when, ms. Stored for the retention. */
  readonly trackingEnded = `${this.prefix}:tracked:ended`;

  /** hash: quote -> its imported content, JSON. Removed when it is no longer in the config and not tracked. */
  readonly importedQuotes = `${this.prefix}:imported-quotes`;

  /** hash: quote -> `<valid|invalid>:<fingerprint of the verified content>`. Stored like `importedQuotes`. */
  readonly verdicts = `${this.prefix}:verdicts`;

  /** hash: intent -> the promises of its imported, valid quote, JSON. Stored like `importedQuotes`. */
  readonly promised = `${this.prefix}:promised`;

  /**
   * hash: route of two chains -> seconds that a delivery takes by quotes; `at`: last note. Stored for the retention after it.
   */
  readonly estimates = `${this.prefix}:estimates`;

  /** hash: name -> definition of a subscription, JSON; one removed from the config stays for its committed events. */
  readonly subscriptions = `${this.prefix}:subscriptions`;

  /** hash: name -> definition of a route of the newest config, JSON. */
  readonly routes = `${this.prefix}:routes`;

  /** hash: name -> definition of a receiver, JSON; one removed from the config stays with its backlog. */
  readonly receivers = `${this.prefix}:receivers`;

  /** hash: the newest config: its digest, and `generation`, the revision that counts what was synchronised. */
  readonly config = `${this.prefix}:config`;

  /** string: the random key for the digests of config files. Never expires. */
  readonly fileDigestKey = `${this.prefix}:config:digest-key`;

  /** string: a confirmed file that removes much, by its digest. Expires after a day. */
  confirmation(digest: string): string {
    return `${this.prefix}:config:confirmed:${digest}`;
  }

  /** string: token of the process that syncs Redis with its config. Expires with its lease. */
  readonly configLease = `${this.prefix}:config:lease`;

  /** string: the newest token of `configLease`. Never expires. */
  readonly configFence = `${this.prefix}:config:fence`;

  /** hash: receiver -> entry of the event log up to which its deliveries were enqueued. */
  readonly cursors = `${this.prefix}:cursors`;

  /** string: fencing token of the process that relays. Expires with its lease. */
  readonly relayLease = `${this.prefix}:relay:lease`;

  /** string: the newest fencing token. Never expires. */
  readonly relayFence = `${this.prefix}:relay:fence`;

  /** Prefix of the keys of checks of stated payments (see commands/include/check.lua). */
  readonly checks = `${this.prefix}:checks`;

  /** string: `<name of the log>|<entry>` up to which stated payments have become checks. Never expires. */
  readonly checksCursor = `${this.checks}:cursor`;

  /** string: fencing token of the process that makes checks. Expires with its lease. */
  readonly checksLease = `${this.checks}:lease`;

  /** string: the newest token of `checksLease`. Never expires. */
  readonly checksFence = `${this.checks}:fence`;

  /** hash: state of a receiver, its reports, and the results of its last attempts. Never expires. */
  receiver(name: string): string {
    return `${this.prefix}:receiver:${name}`;
  }

  /**
   * hash: facts of an open delivery or a dead letter; with "" as delivery those of a receiver's delivered ones, by delivery
   * (commands/include/delivered.lua). Stored as long as the event is in the log, or as a dead letter.
   */
  delivery(receiver: string, delivery: string): string {
    return `${this.prefix}:delivery:${receiver}:${delivery}`;
  }

  /**
   * Prefix of strings, `<replay>:<subject>`: the newest delivery about a subject to a receiver with `ordering: subject`.
   * Stored as long as its event is in the log.
   */
  last(receiver: string): string {
    return `${this.prefix}:last:${receiver}:`;
  }

  /** zset: `<receiver> <replay>` of replays that sent an event again -> 0. Stored as long as the event is in the log. */
  replaysOf(eventId: string): string {
    return `${this.prefix}:replays-of:${eventId}`;
  }

  /** string: the newest entry of the event log that was trimmed. Never expires. */
  readonly trimmed = `${this.prefix}:events:trimmed`;

  /**
   * hash: the epoch of the data, which a restore increases, and its counters (see store/epoch.ts). Scripts find it by the name
   * of the log. Never expires.
   */
  readonly epoch = `${this.events}:epoch`;

  /** hash: the confirmed time and the state of the clocks (see store/confirmed-time.ts). Never expires. */
  readonly clock = `${this.prefix}:clock`;

  /** string: name of this event log, which identifies a cursor of a lost log as such. Never expires. */
  readonly logName = `${this.prefix}:events:name`;

  /** hash: consumer of the event log -> `<name of the log>|<last processed entry>`. Removed with the consumer. */
  readonly consumers = `${this.prefix}:consumers`;

  /** hash: a replay: its range, progress, and the results of its deliveries. Stored for the retention, see `replayTimes`. */
  replay(id: string): string {
    return `${this.prefix}:replay:${id}`;
  }

  /** zset: replay id -> when it was requested, ms. */
  readonly replayTimes = `${this.prefix}:replay-times`;

  /** zset: replay id -> time, ms, at which it was requested; those whose deliveries are not all opened. */
  readonly replays = `${this.prefix}:replays`;

  /** hash: an API request under a name (`Idempotency-Key`), and its answer. Stored for a day. */
  answer(name: string): string {
    return `${this.prefix}:answer:${name}`;
  }

  /** zset: name of a request to the API -> when it was first used, ms. Stored for a day. */
  readonly answers = `${this.prefix}:answers`;

  /** string: a session of the console that was ended. Stored as long as it would have been valid. */
  endedSession(id: string): string {
    return `${this.prefix}:session-ended:${id}`;
  }

  /** zset: delivery id -> when it was opened, ms, of a receiver's deliveries that are neither delivered nor dead. */
  pending(receiver: string): string {
    return `${this.prefix}:pending:${receiver}`;
  }

  /**
   * Prefix of the keys with the place of each open delivery of a receiver: `:due`, `:later`, `:batched`, `:sending` (see
   * commands/include/queue.lua). They exist while there are some.
   */
  queue(receiver: string): string {
    return `${this.prefix}:queue:${receiver}`;
  }

  /** zset: process -> until when it counts as alive, ms; 0 once it has ended or is gone. Removed after the takeover. */
  readonly senders = `${this.prefix}:senders`;

  /** hash: process -> its instance (store/process-instance.ts), and the number of its heartbeats. Removed after the takeover. */
  readonly instances = `${this.prefix}:instances`;

  /** stream: receivers with something to do, for the processes that deliver. Its last ten thousand entries. */
  readonly wakes = `${this.prefix}:wakes`;

  /** zset: delivery id -> since when, ms, it waits to be sent together with others. Stored for the retention. */
  waiting(receiver: string): string {
    return `${this.prefix}:waiting:${receiver}`;
  }

  /**
   * hash: the content of one message: `members`, and the `leader` whose job sends it. Stored for the retention, see `batches`.
   */
  batch(receiver: string, batch: string): string {
    return `${this.prefix}:batch:${receiver}:${batch}`;
  }

  /** zset: batch of a receiver -> when it was frozen, ms. */
  batches(receiver: string): string {
    return `${this.prefix}:batches:${receiver}`;
  }

  /** zset: sweep whose pages are read back to back, as in the plan -> until when its turn lasts, ms. */
  readonly sweepTurns = `${this.prefix}:sweep-turns`;

  /** zset: wallet that no sweep has read to its end -> 0 while one reads it, 1 after its cursor was refused. */
  readonly unswept = `${this.prefix}:unswept`;

  /** list: deliveries of a receiver that will never be made and are not reported yet (see commands/include/dropped.lua). */
  dropped(receiver: string): string {
    return `${this.prefix}:dropped:${receiver}`;
  }

  /** zset: delivery id -> time of death, ms, of a receiver's dead letters. Trimmed to the retention. */
  dead(receiver: string): string {
    return `${this.prefix}:dead:${receiver}`;
  }

  /**
   * hash: subject of the daemon's own events (`intentwatch:storage`) -> how many were made, `<subject>|last` -> the content of
   * the newest report, and `<subject>|once` -> reports that are not repeated. Never expires.
   */
  readonly reports = `${this.prefix}:reports`;

  /** hash: state and pause of an endpoint group (see commands/include/endpoint-group.lua). Never expires. */
  endpointGroup(endpointGroup: string): string {
    return `${this.prefix}:endpointGroup:${endpointGroup}`;
  }

  /** zset: record of an endpoint group that is too large to be read -> last time seen, ms. Bounded, stored for 30 days. */
  tooLarge(endpointGroup: string): string {
    return `${this.prefix}:too-large:${endpointGroup}`;
  }

  /**
   * hash: the current sweep over the pages of a wallet, of all of them (`all`) or of those in one status: `id`, `state`, the
   * `page` that was queued last, the limit of its request, and a field per followed cursor. Outlives a sweep's interval.
   */
  sweep(wallet: SubjectId, listing: string): string {
    return `${this.prefix}:sweep:${listing}:${wallet}`;
  }

  /** hash: observations of a wallet's pages: `polled:<listing>`, `pages`, … Stored for the retention after its tracking. */
  wallet(wallet: SubjectId | ''): string {
    return `${this.prefix}:pages:${wallet}`;
  }

  /** hash: open transfer of a wallet, as `openField` in store/wallets.ts -> its status and when it was last seen. Stored like the observations. */
  open(wallet: SubjectId | ''): string {
    return `${this.prefix}:open:${wallet}`;
  }

  /** string: a poll of its own was requested recently. Expires within seconds. */
  rechecked(id: string): string {
    return `${this.prefix}:rechecked:${id}`;
  }
}
