import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/domain/json.ts';
import { ASSUMPTIONS } from '../../src/operations/probe/assumptions.ts';
import type { ProbeReport } from '../../src/operations/probe/probe-report.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { PRICE_REQUEST, ProbeStage } from '../support/probe-stage.ts';
import { type Rewriting, RewritingProxy } from '../support/rewriting-proxy.ts';

const { later, started } = opening();

/** Broken deployments of each kind of sandbox. */
const BROKEN = 50;

/** Kinds of sandboxes: the names of the interface, in both shapes, and other names. */
const KINDS = [
  { name: 'default names', options: {}, upstream: {} },
  { name: 'the shape of the interface', options: { wire: 'strict' }, upstream: {} },
  {
    name: 'other names',
    options: { quoteDomain: 'AcmeQuoteV1', gatewayPrefix: 'acme-vaults' },
    upstream: { quoteDomain: { name: 'AcmeQuoteV1' }, gateway: { prefix: 'acme-vaults' } },
  },
] as const;

/** A change of one member of every record of an answer. */
type MemberBreak = {
  endpoint: keyof typeof RECORDS;
  member: string;
  change: 'removed' | 'null' | 'other type' | 'extra' | 'other case';
};

/** A change of the behaviour of the whole deployment. */
type Behaviour = (typeof BEHAVIOURS)[number];

const BEHAVIOURS = [
  'oldest first',
  'no Date header',
  'other generation',
  'no key needed',
  'key refused',
  'cursor refused',
  'limit ignored',
  'status ignored',
] as const;

const isObject = (value: JsonValue | undefined): value is JsonObject => isJsonObject(value ?? null);
const list = (value: JsonValue | undefined): JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

/** Records of each endpoint: its title and path, the path of its members, and its members by the answer to their loss. */
const RECORDS = {
  chains: {
    title: 'GET /v1/chains',
    matches: (path: string) => path.startsWith('/v1/chains'),
    at: 'chains[]',
    of: (body: JsonObject) => list(body.chains),
    needed: ['chainId'],
    optional: ['name', 'quoteSigner'],
    nullable: ['name', 'quoteSigner'],
  },
  tokens: {
    title: 'GET /v1/tokens',
    matches: (path: string) => path.startsWith('/v1/tokens'),
    at: 'tokens[]',
    of: (body: JsonObject) => list(body.tokens),
    needed: ['chainId', 'address'],
    optional: ['symbol', 'decimals'],
    nullable: ['symbol', 'decimals'],
  },
  wallets: {
    title: 'GET /v1/intents/status?wallet',
    matches: (path: string) => path.startsWith('/v1/intents/status?wallet'),
    at: 'results[]',
    of: (body: JsonObject) => list(body.results),
    needed: ['id', 'type', 'status'],
    optional: ['updatedAt', 'steps'],
    nullable: ['updatedAt'],
  },
  vaults: {
    title: 'vault of the deposit gateway',
    matches: (path: string) => path.includes('/v2/depositAddresses/') || /^\/v1\/[^/]+\/0x/.test(path),
    at: 'data',
    of: (body: JsonObject) => list([body.data ?? null]),
    needed: [],
    optional: ['amount', 'deadline', 'state'],
    nullable: [],
  },
  quotes: {
    title: 'POST /v1/quotes',
    matches: (path: string) => path === '/v1/quotes',
    at: '',
    of: (body: JsonObject) => [body],
    needed: ['id', 'signature', 'expiresAt', 'intentHash'],
    optional: ['type', 'fees'],
    nullable: ['type', 'fees'],
  },
} as const;

const memberBreak: fc.Arbitrary<MemberBreak> = fc
  .constantFrom(...(Object.keys(RECORDS) as (keyof typeof RECORDS)[]))
  .chain((endpoint) =>
    fc.record({
      endpoint: fc.constant(endpoint),
      member: fc.constantFrom<string>(...RECORDS[endpoint].needed, ...RECORDS[endpoint].optional),
      change: fc.constantFrom<MemberBreak['change'][]>(
        'removed',
        'null',
        'other type',
        'extra',
        'other case',
      ),
    }),
  );

/** The breaks: at most one member of an endpoint, and some behaviours. */
const breakage = fc.record({
  members: fc.uniqueArray(memberBreak, { maxLength: 3, selector: ({ endpoint }) => endpoint }),
  behaviours: fc.uniqueArray(fc.constantFrom(...BEHAVIOURS), { maxLength: 2 }),
});

type Breakage = typeof breakage extends fc.Arbitrary<infer T> ? T : never;

const JUNK = { inner: true };

function broken(record: JsonObject, { member, change }: MemberBreak): JsonObject {
  const { [member]: value = null, ...rest } = record;
  switch (change) {
    case 'removed':
      return rest;
    case 'null':
      return { ...record, [member]: null };
    case 'other type':
      return { ...record, [member]: JUNK };
    case 'extra':
      return { ...record, [`${member}More`]: JUNK };
    case 'other case':
      return { ...rest, [member.toUpperCase()]: value };
    default:
      return change satisfies never;
  }
}

function rewritingOf({ members, behaviours }: Breakage): Rewriting {
  const has = (one: Behaviour): boolean => behaviours.includes(one);
  return {
    request: (passing) => {
      const headers = { ...passing.headers };
      // The sandbox gets its key for a request without one, where none is needed.
      if (has('no key needed')) headers['x-api-key'] = 'sandbox-key';
      if (
        has('key refused') &&
        headers['x-api-key'] !== undefined &&
        passing.headers['x-api-key'] !== undefined
      ) {
        headers['x-api-key'] = 'another-key';
      }
      let path = passing.path;
      if (has('limit ignored')) path = path.replace(/limit=\d+/, 'limit=50');
      if (has('status ignored')) path = path.replace(/&status=[^&]*/, '');
      if (has('other generation') && !path.startsWith('/v1/')) path = '/gone';
      if (has('cursor refused')) path = path.replace(/cursor=[^&]*/, 'cursor=gone');
      return { ...passing, path, headers };
    },
    answer: (returning, passing) => {
      const headers = { ...returning.headers };
      if (has('no Date header')) delete headers.date;
      const found = members.find(({ endpoint }) => RECORDS[endpoint].matches(passing.path));
      const body: JsonValue = returning.status < 300 ? JSON.parse(returning.body) : null;
      if (!isObject(body)) return { ...returning, headers };
      if (has('oldest first') && Array.isArray(body.results)) body.results.reverse();
      const changed = found === undefined ? body : bodyWith(body, found);
      return { ...returning, headers, body: JSON.stringify(changed) };
    },
  };
}

/** The body with every record broken. */
function bodyWith(body: JsonObject, change: MemberBreak): JsonObject {
  const { endpoint } = change;
  if (endpoint === 'quotes') return broken(body, change);
  const records = RECORDS[endpoint].of(body).map((record) => broken(record, change));
  if (endpoint === 'vaults') return { ...body, data: records[0] ?? null };
  return { ...body, [endpoint === 'wallets' ? 'results' : endpoint]: records };
}

/** Members of an endpoint that a report names beyond, or no longer, beside the report of the whole deployment. */
type Shown = { unknown: string[]; unreadable: string[]; unread: string[] };

function shownOf(report: ProbeReport, whole: ProbeReport): Record<string, Shown> {
  return Object.fromEntries(
    whole.endpoints.map(({ endpoint, read, unknown }) => {
      const found = report.endpoints.find((one) => one.endpoint === endpoint);
      const before = new Set(unknown.map(({ member }) => member));
      const names = (found?.unknown ?? []).map(({ member }) => member);
      return [
        endpoint,
        {
          unknown: names.filter((name) => !before.has(name)),
          unreadable: (found?.unreadable ?? []).map(({ member }) => member),
          unread: read.filter((member) => !found?.read.includes(member)),
        },
      ];
    }),
  );
}

/** The model of `shownOf`. */
function expectedMembers({ members, behaviours }: Breakage, whole: ProbeReport): Record<string, Shown> {
  const isShut = behaviours.includes('key refused') && !behaviours.includes('no key needed');
  return Object.fromEntries(
    whole.endpoints.map(({ endpoint, read }) => {
      if (isShut && / \/v1\//.test(endpoint))
        return [endpoint, { unknown: [], unreadable: [], unread: read }];
      const change = members.find((one) => RECORDS[one.endpoint].title === endpoint);
      return [endpoint, expectedOf(change, read)];
    }),
  );
}

function expectedOf(change: MemberBreak | undefined, read: readonly string[]): Shown {
  const none = { unknown: [], unreadable: [], unread: [] };
  if (change === undefined) return none;
  const { at, needed, nullable } = RECORDS[change.endpoint];
  const pathOf = (name: string): string => (at === '' ? name : `${at}.${name}`);
  const path = pathOf(change.member);
  const nested = read.filter((one) => one.startsWith(`${path}.`) || one.startsWith(`${path}[`));
  const unread = read.filter((one) => one === path || nested.includes(one));
  const lost = [...needed].some((one) => one === change.member) ? [path] : [];
  switch (change.change) {
    case 'removed':
      return { ...none, unreadable: lost, unread };
    case 'null':
      return [...nullable].some((one) => one === change.member)
        ? { ...none, unread: nested }
        : { ...none, unreadable: [path], unread };
    case 'other type':
      return { ...none, unreadable: [path], unread };
    case 'extra':
      return { ...none, unknown: [pathOf(`${change.member}More`)] };
    case 'other case':
      return { unknown: [pathOf(change.member.toUpperCase())], unreadable: lost, unread };
    default:
      return change.change satisfies never;
  }
}

const CONFIRMED = Object.fromEntries(Object.keys(ASSUMPTIONS).map((id) => [id, 'confirmed']));

/** The model of the verdicts: which assumptions a breakage contradicts, and which it leaves open. */
function expectedVerdicts({ members, behaviours }: Breakage): Record<string, string> {
  const has = (one: Behaviour): boolean => behaviours.includes(one);
  const breaks = (endpoint: MemberBreak['endpoint'], ...names: string[]): boolean =>
    members.some((one) => one.endpoint === endpoint && one.change !== 'extra' && names.includes(one.member));
  const unreadable = members.filter((one) => expectedOf(one, []).unreadable.length > 0);
  const isUnreadable = (...endpoints: MemberBreak['endpoint'][]): boolean =>
    unreadable.some(({ endpoint }) => endpoints.includes(endpoint));
  const isCoreless = breaks('wallets', ...RECORDS.wallets.needed);
  const isShut = has('key refused') && !has('no key needed');
  const given = (isOpen: boolean, isContradicted: boolean): string =>
    isOpen ? 'open' : isContradicted ? 'contradicted' : 'confirmed';
  const isUnordered = isCoreless || breaks('wallets', 'updatedAt');
  return {
    ...CONFIRMED,
    'unknown-id': given(isShut, false),
    'date-header': given(false, has('no Date header')),
    'page-order': given(isShut || isUnordered, has('oldest first')),
    'page-limit': given(isShut || isCoreless, has('limit ignored')),
    'page-status': given(isShut || isCoreless, has('status ignored')),
    'page-cursor': given(isShut || (isCoreless && !has('cursor refused')), has('cursor refused')),
    'gateway-paths': given(false, has('other generation')),
    'api-key': given(false, has('key refused') || has('no key needed')),
    'quote-domain': given(
      isShut || breaks('quotes', ...RECORDS.quotes.needed) || breaks('chains', 'chainId', 'quoteSigner'),
      false,
    ),
    'chain-lists': given(isShut, isUnreadable('chains', 'tokens')),
    'quote-members': given(isShut, isUnreadable('quotes')),
  };
}

test(`the report equals what was broken, at ${BROKEN} broken deployments of three kinds`, async () => {
  const stage = await ProbeStage.start();
  later(() => stage.close());
  const price = ['--quote', await stage.file('price.json', PRICE_REQUEST)];
  const deployments: ((breakage: Breakage) => ReturnType<ProbeStage['probe']>)[] = [];
  for (const { options, upstream } of KINDS) {
    const world = { timeScale: 2_000, transfersPerSecond: 0, pastTransfers: 200, wallets: 2 };
    const sandbox = await started(new Sandbox({ ...world, ...options }));
    await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0);
    const proxy = await started(new RewritingProxy(sandbox.url));
    const { wallets, intents, gaslessJobs, vaults } = sandbox.subjects();
    const subjects = {
      wallets: wallets.slice(0, 1),
      intents: intents.slice(0, 1),
      gaslessJobs: gaslessJobs.slice(0, 1).map((id) => ({ id, endpoint: 'gateway' })),
      vaults: vaults.slice(0, 1),
    };
    deployments.push(async (breakage) => {
      proxy.rewriting = rewritingOf(breakage);
      return stage.probe({ upstream: { baseUrl: proxy.url, ...upstream }, subjects }, price);
    });
  }
  const nothing: Breakage = { members: [], behaviours: [] };
  const wholes: Awaited<ReturnType<ProbeStage['probe']>>[] = [];
  // One after the other: they share a config file.
  for (const deployment of deployments) wholes.push(await deployment(nothing));
  for (const { report } of wholes) {
    expect(report.endpoints.flatMap(({ unreadable }) => unreadable)).toEqual([]);
    expect(verdictsOf(report)).toEqual(CONFIRMED);
  }
  await fc.assert(
    fc.asyncProperty(fc.nat(KINDS.length - 1), breakage, async (kind, drawn) => {
      const [deployment, whole] = [deployments[kind], wholes[kind]?.report];
      if (deployment === undefined || whole === undefined) throw new Error('each kind has a deployment');
      const { report, code } = await deployment(drawn);
      const described = JSON.stringify({ kind: KINDS[kind]?.name, drawn, report }, null, 1);
      expect(shownOf(report, whole), described).toEqual(expectedMembers(drawn, whole));
      expect(verdictsOf(report), described).toEqual(expectedVerdicts(drawn));
      const has = (one: Behaviour): boolean => drawn.behaviours.includes(one);
      expect(
        report.settings.map(({ setting }) => setting),
        described,
      ).toEqual([
        ...(has('key refused') || has('no key needed') ? ['upstream.apiKey'] : []),
        ...(has('other generation') ? ['upstream.gateway.generation'] : []),
      ]);
      expect(code, described).toBe(has('key refused') ? 78 : 0);
    }),
    { numRuns: BROKEN, endOnFailure: true },
  );
});

function verdictsOf({ assumptions }: ProbeReport): Record<string, string> {
  return Object.fromEntries(assumptions.map(({ id, verdict }) => [id, verdict]));
}
