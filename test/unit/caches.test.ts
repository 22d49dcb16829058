import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { CACHES } from '../../src/domain/caches.ts';

const SOURCE = resolve(import.meta.dirname, '../../src');

/** The sources of the program, by path, without the table itself. */
const SOURCES = new Map(
  readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && path !== 'domain/caches.ts')
    .map((path) => [path, readFileSync(join(SOURCE, path), 'utf8')]),
);

/**
 * Collections that live as long as their class or module and are not in the table, each with the reason why neither load nor
 * input makes it grow without another limit.
 */
const ELSEWHERE_BOUNDED: Readonly<Record<string, string>> = {
  'domain/cadence/hazard.ts CURVES': 'live as long as the expectations of the rules',
  'config/file/config-file.ts #read': 'files that the config names',
  'config/file/findings.ts holding': 'schemas of the program',
  'daemon/added-receivers.ts #definitions': 'receivers made through the API, at most `MOST_ADDED`',
  'daemon/added-receivers.ts #leftOut': 'the same',
  'daemon/clocks.ts #dates': 'the last `MOST_DATES`',
  'daemon/daemon.ts #draining': 'generations that end after a reload',
  'daemon/redis-connections.ts #open': 'connections of the program',
  'domain/books/postings.ts #sums': 'days of the books that one call reads',
  'domain/changes/diff.ts #byLeaf': 'the elements of one record',
  'metrics/instruments.ts #receivers': 'receivers of the config',
  'metrics/instruments.ts #routes': 'routes of the config',
  'metrics/instruments.ts #chains': 'chains of the config',
  'metrics/instruments.ts #endpoints': 'RPC endpoints of the config',
  'metrics/instruments.ts #counters': 'metrics of the program',
  'metrics/instruments.ts #gauges': 'metrics of the program',
  'metrics/instruments.ts #zeroed': 'metrics of the program',
  'metrics/instruments.ts #histograms': 'metrics of the program',
  'metrics/metrics.ts #pending': 'sources of the program',
  'metrics/metrics.ts #exposing': 'two formats',
  'network/resolver.ts #underWay': 'hosts to which connections are being made',
  'notifiers/email/transport.ts received': 'live as long as their connections',
  'notifiers/webhook/connections.ts #ending': 'pools of requests under way',
  'notifiers/webhook/exchange.ts #chunks': 'one answer, at most `LIMITS.receiverAnswer`',
  'notifiers/webhook/webhook.ts KEYS': 'live as long as the secrets of the config',
  'operations/log-tail.ts #waiters': 'streams and requests, limited by the server',
  'queues/checks/checks.ts #working': 'checks under way, `MOST_PER_CHAIN` and `MOST_ENDED`',
  'queues/deliveries/delivery-worker.ts #held':
    'deliveries under way, limited by `concurrency` and the sender',
  'queues/deliveries/delivery-worker.ts #placed': 'the same',
  'queues/deliveries/delivery-worker.ts #dueAgain': 'the same',
  'queues/deliveries/delivery-worker.ts #sending': 'the same',
  'queues/deliveries/delivery-worker.ts #ends': 'the same',
  'queues/deliveries/delivery-worker.ts #givenUp': 'the same',
  'queues/deliveries/prefetch.ts #waiting': 'at most `concurrency`',
  'queues/deliveries/relay.ts #failed': 'receivers of the config',
  'queues/deliveries/sender.ts #listeners': 'receivers of the config',
  'queues/heartbeat.ts #cutOff': 'processes on the same Redis',
  'queues/polls/dispatcher.ts #held': 'polls under way, at most the capacity',
  'queues/polls/dispatcher.ts #claimed': 'the same',
  'queues/polls/poll-ends.ts #waiting': 'at most `MOST_IN_JOB`',
  'secret.ts derived': 'live as long as the secrets of the config',
  'server/api/api.ts #byCaller': 'streams, at most `MAX_STREAMS`',
  'server/api/openapi.ts documents': 'lists of routes of the program',
  'server/failed-logins.ts #waiting': '`CACHES.waitingSignIns`',
  'server/loop-watch.ts #stalls': 'the stalls of a minute',
  'duty.ts groups': 'seconds in which a wait of the program ends',
  'store/commands.ts decoders': 'schemas of the program',
  'store/definitions.ts #texts': 'live as long as the definitions',
  'store/definitions.ts #digests': 'live as long as the definitions',
  'store/embedded.ts #unreported': 'files that Redis cut off at its start',
  'store/imported-quotes.ts #own': 'quotes of the config',
  'store/own-entries.ts #expected': 'commits that one turn of the event loop sends: pages take turns of 4 ms',
  'store/plan.ts #listeners': 'endpoint groups',
  'store/redis-monitor.ts #watched': 'connections of the program',
};

/** Names the members of classes and the variables of modules that are made as empty, growing collections. */
function collectionsOf(text: string): string[] {
  const made =
    /^(?: {2}(?:readonly )?(#\w+)|(?:const|let) (\w+))(?::[^=\n]+)? = (?:new (?:Map|Set|WeakMap)(?:<.*>)?\(\)|\[\]);$/gm;
  return [...text.matchAll(made)].map(([, member, variable]) => member ?? variable ?? '');
}

test('each collection of a class or module is in the table of caches, or bounded elsewhere', () => {
  const found = [...SOURCES].flatMap(([path, text]) => collectionsOf(text).map((name) => `${path} ${name}`));
  expect(found.sort()).toEqual(Object.keys(ELSEWHERE_BOUNDED).sort());
});

// V8 holds each former table of a map, with what it held, for an iterator that lives on.
test('no class holds an iterator of a collection', () => {
  const iterators = /#\w+ (?:\?\?)?= this\.#\w+(?:\.(?:keys|values|entries)\(\)|\[Symbol\.iterator\]\(\))/g;
  const sources = [...SOURCES, ['domain/caches.ts', readFileSync(join(SOURCE, 'domain/caches.ts'), 'utf8')]];
  expect(
    sources.flatMap(([path, text = '']) => (text.match(iterators) ?? []).map((at) => `${path} ${at}`)),
  ).toEqual([]);
});

test('each cache of the table has one module, which takes its bounds from there', () => {
  const owners = Object.fromEntries(
    Object.keys(CACHES).map((name) => [
      name,
      [...SOURCES].flatMap(([path, text]) => (new RegExp(`\\bCACHES\\.${name}\\b`).test(text) ? [path] : [])),
    ]),
  );
  expect(owners).toEqual({
    seenPages: ['queues/polls/seen-pages.ts'],
    openTransfers: ['store/wallets.ts'],
    heldSubjects: ['store/held-subjects.ts'],
    logEntries: ['store/event-log.ts'],
    ownEntries: ['store/own-entries.ts'],
    subscriptions: ['store/definitions.ts'],
    receivers: ['store/definitions.ts'],
    relaySubscriptions: ['queues/deliveries/relay-memory.ts'],
    blocks: ['chains/endpoint.ts'],
    hostNames: ['network/resolver.ts'],
    failedLogins: ['server/failed-logins.ts'],
    waitingSignIns: ['server/failed-logins.ts'],
    unusedConnections: ['notifiers/webhook/connections.ts'],
    logLines: ['log.ts'],
    rpcFailures: ['queues/checks/failure-log.ts'],
    foreignEntries: ['signals.ts'],
    missedNames: ['queues/chain-discovery.ts'],
    contradictions: ['queues/chain-discovery.ts'],
    undecidedQuotes: ['queues/polls/quote-verification.ts'],
    statusDifferences: ['queues/polls/poll-open-status.ts'],
    receiverMoves: ['store/receivers.ts'],
    timeZones: ['domain/events/batching.ts'],
    statements: ['books/sql/postgres.ts'],
    labelSets: ['metrics/instruments.ts'],
    routeSeries: ['metrics/label-values.ts', 'metrics/show.ts'],
    tokenSeries: ['metrics/label-values.ts', 'metrics/show.ts'],
    learnedBatches: ['queues/polls/learning.ts'],
    learnedEstimates: ['queues/polls/learning.ts'],
  });
});

test('each bounded map takes its bounds from the table', () => {
  const maps = [...SOURCES.values()].flatMap((text) => [
    ...text.matchAll(
      /new BoundedMap(?:<[^(]*>)?\(\{\s*(?:\.\.\.(CACHES\.\w+|limits)|entries: (CACHES\.\w+))/g,
    ),
  ]);
  const all = [...SOURCES.values()].flatMap((text) => text.match(/new BoundedMap\b/g) ?? []);
  expect(maps.length).toBe(all.length);
});
