import { redactor, secretsOfUrl } from '../../redact.ts';
import { type MemberReport, reportMembers } from '../../upstream/wire/member-report.ts';
import { VERSION } from '../../version.ts';
import {
  ASSUMPTIONS,
  acceptedChainParam,
  answeredGenerations,
  type Judged,
  type KeyState,
  keyState,
  provenDomain,
  wordsOf,
} from './assumptions.ts';
import { type Exchange, type ProbedEndpoint, type ProbeInput, ProbeRun } from './probe-run.ts';
import { generationsOf, PROBED } from './probed-endpoints.ts';

/**
 * The result of a probe. It has no key, host, path word, address, hash, amount or error text: its texts are of this program, and
 * names of unknown members pass `memberNames`.
 */
export type ProbeReport = {
  version: string;
  requests: number;
  key: KeyState;
  /** Requests that the limits of a probe did not allow. */
  omitted: number;
  endpoints: EndpointReport[];
  /** Statuses of the tables in docs/assumptions.md; any other is `<word>`. */
  words: { status: string[]; gateway: string[] };
  assumptions: (Judged & { id: string; title: string })[];
  settings: Proposal[];
};

type EndpointReport = {
  endpoint: string;
  requests: { purpose: string; key: 'with' | 'without'; answered: string; durationMs: number }[];
  read: string[];
  unknown: { member: string; types: string[] }[];
  unreadable: { member: string; reasons: string[] }[];
};

/** A setting of the config that the answers propose. */
type Proposal = { setting: string; proposal: string };

/** Sends the requests of a probe and reports the answers. */
export async function probe(input: ProbeInput, options: { mostMs?: number } = {}): Promise<ProbeReport> {
  const run = new ProbeRun(input, options);
  try {
    for (const endpoint of PROBED) await endpoint.run(run);
  } finally {
    await run.close();
  }
  return reportOf(run);
}

async function reportOf({ input, exchanges, omitted }: ProbeRun): Promise<ProbeReport> {
  const facts = { input, exchanges };
  const nameOf = memberNames(input);
  const judged = Object.entries(ASSUMPTIONS).map(async ([id, { title, judge }]) => ({
    id,
    title,
    ...(await judge(facts)),
  }));
  const words = wordsOf(exchanges);
  const listOf = (group: 'status' | 'gateway'): string[] =>
    unique(words.filter((one) => one.group === group).map(({ word }) => word ?? '<word>'));
  return {
    version: VERSION,
    requests: exchanges.length,
    key: keyState(facts),
    omitted,
    endpoints: PROBED.flatMap((endpoint) => {
      const own = exchanges.filter((exchange) => exchange.endpoint === endpoint);
      return own.length === 0 ? [] : [endpointReport(endpoint, { exchanges: own, nameOf })];
    }),
    words: { status: listOf('status'), gateway: listOf('gateway') },
    assumptions: await Promise.all(judged),
    settings: await proposals(facts),
  };
}

function endpointReport(
  { title, schema }: ProbedEndpoint,
  { exchanges, nameOf }: { exchanges: readonly Exchange[]; nameOf: (name: string) => string },
): EndpointReport {
  const reports = exchanges.map((exchange) => membersOf(schema, exchange));
  const unknown = reports.flatMap((report) =>
    [...report.unknown.values()].map(({ parent, name, types }) => ({
      key: parent === '' ? nameOf(name) : `${parent}.${nameOf(name)}`,
      values: types,
    })),
  );
  const unreadable = reports.flatMap((report) =>
    [...report.unreadable].map(([key, values]) => ({ key, values })),
  );
  return {
    endpoint: title,
    requests: exchanges.map((exchange) => ({
      purpose: exchange.purpose,
      key: exchange.withKey ? 'with' : 'without',
      answered: answerOf(exchange),
      durationMs: exchange.durationMs,
    })),
    read: unique(reports.flatMap((report) => [...report.read])),
    unknown: merged(unknown).map(({ key, values }) => ({ member: key, types: values })),
    unreadable: merged(unreadable).map(({ key, values }) => ({ member: key, reasons: values })),
  };
}

/** Members of one answer. A success that the reader refuses as a whole is unreadable, whatever its members are. */
function membersOf(schema: ProbedEndpoint['schema'], { body, isRead, httpStatus }: Exchange): MemberReport {
  const report: MemberReport =
    body === undefined
      ? { read: new Set(), unknown: new Map(), unreadable: new Map() }
      : reportMembers(schema, body);
  const isSuccess = httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
  if (isSuccess && !isRead && report.unreadable.size === 0) {
    const found = body === undefined ? 'no JSON within the limits' : 'no member that is needed';
    report.unreadable.set('the answer', new Set([`found ${found}`]));
  }
  return report;
}

function answerOf({ httpStatus, failure, problemCode }: Exchange): string {
  const status = httpStatus === null ? 'no answer' : `HTTP ${httpStatus}`;
  if (failure === null) return status;
  return `${status}, ${failure}${problemCode === null || problemCode === failure ? '' : ` (${problemCode})`}`;
}

function merged(
  rows: readonly { key: string; values: Iterable<string> }[],
): { key: string; values: string[] }[] {
  const byKey = new Map<string, Set<string>>();
  for (const { key, values } of rows) byKey.set(key, new Set([...(byKey.get(key) ?? []), ...values]));
  return [...byKey]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, values]) => ({ key, values: unique(values) }));
}

function unique(values: Iterable<string>): string[] {
  return [...new Set(values)].sort();
}

async function proposals(facts: { input: ProbeInput; exchanges: readonly Exchange[] }): Promise<Proposal[]> {
  const { upstream } = facts.input;
  const found: Proposal[] = [];
  const propose = (setting: string, proposal: string): void => void found.push({ setting, proposal });
  const key = keyState(facts);
  if (key === 'refused') propose('upstream.apiKey', 'another key: the service refuses this one');
  if (key === 'needed') propose('upstream.apiKey', 'a key: the service refuses requests without one');
  if (key === 'not needed' && upstream.apiKey !== null) {
    propose('upstream.apiKey', 'none: the requests of this probe were answered without one');
  }
  const [own] = generationsOf(upstream.gateway);
  const generations = answeredGenerations(facts);
  const isRequested = facts.exchanges.some(({ endpoint }) => endpoint.endpointGroup === 'gateway');
  if (generations.length === 0 && isRequested) {
    propose('upstream.gateway.prefix', 'the word of this deployment, if vaults or gateway jobs are watched');
  } else if (own !== undefined && isRequested && !generations.includes(own.name)) {
    propose('upstream.gateway.generation', generations.join(' or '));
  }
  const chainParam = acceptedChainParam(facts);
  if (chainParam !== null) propose('upstream.gateway.chainParam', chainParam);
  const domain = await provenDomain(facts);
  if (domain.outcome === 'proven' && domain.position > 0) {
    const isGiven = domain.position <= facts.input.domains.length;
    propose(
      'upstream.quoteDomain',
      isGiven ? `name ${domain.position} of --quote-domain` : 'that of the interface: leave the setting out',
    );
  }
  if (domain.outcome === 'unproven') propose('upstream.quoteDomain', 'the name of this deployment');
  return found;
}

/** The shape of a member name that is printed. */
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,29}$/;

/** Labels of hosts and words of paths that name no deployment. */
const COMMON_WORDS = [
  'api',
  'www',
  'com',
  'net',
  'org',
  'dev',
  'xyz',
  'deposit',
  'gateway',
  'quotes',
  'status',
];

/** Shortest word of a URL that is searched for in names. */
const LEAST_WORD = 3;

/**
 * Makes the printable form of a member name that the upstream chose: `<name>` unless it is plain, without eight hex digits in a
 * row, without a random mix of letters and digits, and without any word of the settings.
 */
function memberNames({
  upstream,
  intents,
  wallets,
  jobs,
  vaults,
  domains,
  quote,
}: ProbeInput): (name: string) => string {
  const { baseUrl, quotesUrl, apiKey, proxy, gateway, quoteDomain } = upstream;
  const urls = [baseUrl, ...(quotesUrl === null ? [] : [quotesUrl])].map((url) => new URL(url));
  const usual = new Set(
    generationsOf(gateway)
      .filter(({ name }) => name !== 'configured')
      .flatMap((one) => pathWords(one.gateway)),
  );
  const words = [
    ...urls.flatMap(({ hostname, pathname }) => [...hostname.split('.'), ...pathname.split('/')]),
    ...pathWords(gateway).filter((word) => !usual.has(word)),
    ...(quote === null ? [] : [quote.dappId]),
    gateway.prefix,
    ...gateway.prefix.split(/[._-]/),
    upstream.dAppId,
    ...[quoteDomain, ...domains].flatMap(({ name }) => [name, ...name.split(/[^A-Za-z0-9]/)]),
  ];
  const secrets = [
    ...words.filter((word) => word.length >= LEAST_WORD && !COMMON_WORDS.includes(word.toLowerCase())),
    ...(apiKey === null ? [] : [apiKey.reveal()]),
    ...(proxy === null ? [] : secretsOfUrl(new URL(proxy.reveal()))),
    ...intents,
    ...wallets,
    ...jobs,
    ...vaults.map(({ address }) => address),
  ];
  const redact = redactor([...secrets, ...secrets.map(joined)]);
  const isSecret = (text: string): boolean => redact(text) !== text;
  return (name) => {
    const isPlain = PLAIN_NAME.test(name) && !/[0-9a-f]{8}/i.test(name) && !isRandom(name);
    return isPlain && !isSecret(name) && !isSecret(joined(name)) ? name : '<name>';
  };
}

/** Words of the paths of the vault endpoints. */
function pathWords({ vaultPath, jobPath }: ProbeInput['upstream']['gateway']): string[] {
  return [vaultPath, jobPath].flatMap((path) => path.split(/[^\w.~-]+/));
}

/** Letters and digits alone: a name may separate the words of a setting in another way. */
function joined(text: string): string {
  return text.replace(/[^A-Za-z0-9]/g, '');
}

/** Most digits of a name, as in `erc3009`. A key or a part of an address has more. */
const MOST_DIGITS = 4;

function isRandom(name: string): boolean {
  const digits = name.replace(/\D/g, '').length;
  const runs = name.match(/\d+/g)?.length ?? 0;
  return digits > MOST_DIGITS || runs > 2;
}
