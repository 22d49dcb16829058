import { orderOf } from '../../domain/cadence/wallet.ts';
import type { JsonValue } from '../../domain/json.ts';
import { INTERFACE_DOMAIN, type QuoteDomain, validVerdict } from '../../domain/quotes/quote-signature.ts';
import { eventKind, UNKNOWN } from '../../domain/subjects/kinds.ts';
import type { SubjectKind } from '../../domain/subjects/subject.ts';
import { readChains } from '../../upstream/wire/chain-list.ts';
import { readGatewayJob, readVault } from '../../upstream/wire/gateway-record.ts';
import { reportMembers } from '../../upstream/wire/member-report.ts';
import { readOpenStatus } from '../../upstream/wire/open-status.ts';
import { readQuoteAnswer } from '../../upstream/wire/quote.ts';
import type { StatusRecord } from '../../upstream/wire/status-page.ts';
import type { Exchange, ProbeInput } from './probe-run.ts';
import { ENDPOINT, generationsOf, pageBefore, recordsOf, SMALL_PAGE } from './probed-endpoints.ts';

/** An assumption of docs/assumptions.md by the id of its row, as far as answers decide it. */
export type Judged = { verdict: 'confirmed' | 'contradicted' | 'open'; evidence: string };

type Facts = { input: ProbeInput; exchanges: readonly Exchange[] };

type Assumption = { title: string; judge: (facts: Facts) => Judged | Promise<Judged> };

const confirmed = (evidence: string): Judged => ({ verdict: 'confirmed', evidence });
const contradicted = (evidence: string): Judged => ({ verdict: 'contradicted', evidence });
const open = (evidence: string): Judged => ({ verdict: 'open', evidence });

/** The assumptions that a probe judges: id and title are those of their rows in docs/assumptions.md. */
export const ASSUMPTIONS = {
  'word-case': { title: 'Case of words', judge: ({ exchanges }) => judgeCase(wordsOf(exchanges)) },
  'status-words': { title: 'Status words', judge: ({ exchanges }) => judgeWords(wordsOf(exchanges)) },
  'unknown-id': { title: 'Unknown ids', judge: judgeUnknownId },
  'date-header': { title: 'Date header', judge: judgeDate },
  'page-order': { title: 'Order of pages', judge: judgeOrder },
  'page-limit': { title: 'Page limit', judge: judgeLimit },
  'page-status': { title: 'Status filter', judge: judgeStatusFilter },
  'page-cursor': { title: 'Cursor', judge: judgeCursor },
  'gateway-paths': { title: 'Gateway paths', judge: judgePaths },
  'gateway-chain': { title: 'Chain of a vault', judge: judgeChainParam },
  'api-key': { title: 'API key', judge: judgeKey },
  'quote-domain': { title: 'Signature name', judge: judgeDomain },
  'chain-lists': {
    title: 'Lists of chains and tokens',
    judge: (facts) => judgeRead(facts, [ENDPOINT.chains, ENDPOINT.tokens]),
  },
  'quote-members': { title: 'Members of a quote', judge: (facts) => judgeRead(facts, [ENDPOINT.quotes]) },
} as const satisfies Readonly<Record<string, Assumption>>;

/** A status word of the tables of kinds; `word` is null for any other. */
export type SeenWord = { group: 'status' | 'gateway'; word: string | null; spelling: string };

/** The status words of all answers, once each. A word that no table has is not named. */
export function wordsOf(exchanges: readonly Exchange[]): SeenWord[] {
  const seen = exchanges.flatMap((exchange): SeenWord[] => [
    ...recordsOf(exchange).map(({ status }) => seenWord('status', status)),
    ...openWords(exchange).map((word) => seenWord('status', word)),
    ...gatewayWords(exchange).map((word) => seenWord('gateway', word)),
  ]);
  return [...new Map(seen.map((one) => [JSON.stringify(one), one])).values()];
}

const WORDS: Readonly<Record<SeenWord['group'], ReadonlySet<string>>> = {
  status: new Set([...(['intent', 'quote', 'gasless'] as const).flatMap(statusesOf), UNKNOWN]),
  gateway: new Set((['gasless', 'vault'] as const).flatMap(statusesOf)),
};

function statusesOf(kind: SubjectKind): string[] {
  return Object.keys(eventKind(kind).statuses);
}

/** The usual spelling: the deposit gateway has upper case. */
const CASE = { status: 'lower case', gateway: 'upper case' } as const;

function seenWord(group: SeenWord['group'], spelled: string): SeenWord {
  const lower = spelled.toLowerCase();
  const spelling =
    spelled === lower ? 'lower case' : spelled === spelled.toUpperCase() ? 'upper case' : 'mixed case';
  return { group, word: WORDS[group].has(lower) ? lower : null, spelling };
}

function openWords({ endpoint, body }: Exchange): string[] {
  if (body === undefined || endpoint !== ENDPOINT.openStatus) return [];
  const parsed = readOpenStatus(body);
  return 'value' in parsed ? [parsed.value.status] : [];
}

function gatewayWords({ endpoint, body }: Exchange): string[] {
  if (body === undefined || ![ENDPOINT.jobs, ENDPOINT.vaults].includes(endpoint)) return [];
  const parsed = endpoint === ENDPOINT.jobs ? readGatewayJob(body) : readVault(body);
  if (!('value' in parsed)) return [];
  const word = 'status' in parsed.value ? parsed.value.status : parsed.value.state;
  return word === null ? [] : [word];
}

function judgeCase(words: readonly SeenWord[]): Judged {
  const listed = words.filter(({ word }) => word !== null);
  if (listed.length === 0) return open('no answer had a status of the tables');
  const other = listed.filter(({ group, spelling }) => spelling !== CASE[group]);
  return other.length === 0
    ? confirmed('statuses have the case of the interface')
    : contradicted(
        `${[...new Set(other.map(({ group, spelling }) => `${spelling} at the ${group} endpoints`))].join(', ')}; the case of a status does not count`,
      );
}

function judgeWords(words: readonly SeenWord[]): Judged {
  if (words.length === 0) return open('no answer had a status');
  const groups = new Set(words.filter(({ word }) => word === null).map(({ group }) => group));
  return groups.size === 0
    ? confirmed('all statuses are in the tables')
    : contradicted(
        `statuses that no table has, at the ${[...groups].join(' and ')} endpoints; they pass as they are`,
      );
}

function judgeUnknownId({ exchanges }: Facts): Judged {
  const exchange = exchanges.find(
    ({ endpoint, purpose, failure }) =>
      endpoint === ENDPOINT.intents && purpose === 'nobody' && (failure === null || failure === 'not-found'),
  );
  if (exchange === undefined) return open('the request for an unknown intent was not answered');
  const statuses = recordsOf(exchange).map(({ status }) => status.toLowerCase());
  return statuses.length > 0 && statuses.every((status) => status === UNKNOWN)
    ? confirmed('an unknown intent has the status unknown')
    : contradicted(
        exchange.failure === null
          ? 'an unknown intent has another status, or none'
          : 'an unknown intent is answered HTTP 404',
      );
}

function judgeDate({ exchanges }: Facts): Judged {
  const answered = exchanges.filter(({ isRead }) => isRead);
  if (answered.length === 0) return open('no request was answered');
  const without = answered.filter(({ hasDate }) => !hasDate).length;
  return without === 0
    ? confirmed('every answer has the header')
    : contradicted(
        `${without === answered.length ? 'no' : 'not every'} answer has the header: the time of Redis counts`,
      );
}

function pagesOf({ exchanges }: Facts, kind: string): Exchange[] {
  return exchanges.filter(({ endpoint, purpose }) => endpoint === ENDPOINT.wallets && purpose === kind);
}

/** The readable full pages of wallets, each with the page of another purpose for the same wallet. */
function pairs(facts: Facts, kind: string): { page: StatusRecord[]; other: Exchange }[] {
  const full = pagesOf(facts, 'page').filter(({ isRead }) => isRead);
  return pagesOf(facts, kind).flatMap((other) => {
    const page = full.find(({ variant }) => variant === other.variant);
    return page === undefined ? [] : [{ page: recordsOf(page), other }];
  });
}

function judgeOrder(facts: Facts): Judged {
  const pages = pagesOf(facts, 'page').map((exchange) =>
    recordsOf(exchange).map(({ updatedAt }) => ({ isNew: false, updatedAt })),
  );
  if (pages.some((page) => orderOf(page.toReversed()) === 'newest-first')) {
    return contradicted('pages show the oldest change first: new transfers are found by sweeps');
  }
  return pages.some((page) => orderOf(page) === 'newest-first')
    ? confirmed('pages show the newest change first')
    : open('no page of a wallet shows an order: it takes ten different times');
}

function judgeLimit(facts: Facts): Judged {
  const found = pairs(facts, 'limit').filter(({ other }) => other.isRead);
  if (found.some(({ other }) => recordsOf(other).length > SMALL_PAGE)) {
    return contradicted('a page has more results than its limit');
  }
  return found.some(({ page }) => page.length > SMALL_PAGE)
    ? confirmed('a page has no more results than its limit')
    : open('no wallet with more results than the smallest page');
}

function judgeStatusFilter(facts: Facts): Judged {
  const found = pairs(facts, 'status').filter(({ other }) => other.isRead);
  const first = ([record]: StatusRecord[]): string => record?.status.toLowerCase() ?? '';
  const isOther = (records: StatusRecord[], word: string): boolean =>
    records.some(({ status }) => status.toLowerCase() !== word);
  if (found.some(({ page, other }) => isOther(recordsOf(other), first(page)))) {
    return contradicted('a page of one status has other statuses');
  }
  return found.some(({ page }) => isOther(page, first(page)))
    ? confirmed('a page of one status has no other')
    : open('no wallet with several statuses on its first page');
}

function judgeCursor(facts: Facts): Judged {
  const next = pairs(facts, 'cursor');
  const answered = next.filter(({ other }) => other.isRead || other.failure === 'invalid-request');
  if (answered.length === 0) return open('no page had a cursor');
  const before = new Set(
    answered.flatMap(({ other: { variant } }) => {
      const of = (kind: string) =>
        pagesOf(facts, kind).find((one) => one.variant === variant && one.isRead) ?? null;
      return recordsOf(pageBefore(of('limit'), of('page'))).map(({ id }) => id);
    }),
  );
  if (answered.some(({ other }) => !other.isRead)) return contradicted('a fresh cursor was refused');
  const further = answered.map(({ other }) => recordsOf(other)).filter((records) => records.length > 0);
  if (further.length === 0) return open('no result behind a cursor was read');
  return further.some((records) => records.every(({ id }) => before.has(id)))
    ? contradicted('a cursor led to no further results')
    : confirmed('a cursor leads to further results');
}

/** Paths exist where an answer is the API's, and not that of a proxy or of a missing path. */
function isOfApi({ isRead, body, failure, problemCode }: Exchange): boolean {
  if (isRead || body !== undefined) return true;
  const codes = ['invalid-request', 'not-found', 'rate-limited'];
  return (
    codes.some((code) => code === failure) && problemCode !== null && problemCode !== 'endpoint-not-found'
  );
}

/** Names of the generations of paths that the deposit gateway answers. */
export function answeredGenerations({ exchanges }: Facts): string[] {
  const names = exchanges
    .filter(({ endpoint }) => endpoint === ENDPOINT.jobs || endpoint === ENDPOINT.vaults)
    .filter(isOfApi)
    .map(({ purpose }) => purpose);
  return [...new Set(names)];
}

function judgePaths(facts: Facts): Judged {
  const [own] = generationsOf(facts.input.upstream.gateway);
  const found = answeredGenerations(facts);
  const paths = own?.name === 'configured' ? 'the paths of upstream.gateway.paths' : `the ${own?.name} paths`;
  if (found.length === 0) return open('no generation of the paths was answered by the API');
  return found.includes(own?.name ?? '')
    ? confirmed(`${paths} are answered`)
    : contradicted(`${paths} are not answered, the ${found.join(' and ')} paths are`);
}

/** The name of the query parameter that was accepted where the configured one was refused; null for none. */
export function acceptedChainParam({ exchanges }: Facts): string | null {
  const accepted = exchanges.find(
    (exchange) =>
      exchange.endpoint === ENDPOINT.vaults &&
      exchange.variant !== '' &&
      exchange.failure !== 'invalid-request' &&
      isOfApi(exchange),
  );
  return accepted?.variant ?? null;
}

function judgeChainParam(facts: Facts): Judged {
  const accepted = acceptedChainParam(facts);
  if (accepted !== null) return contradicted(`the configured parameter is refused, ${accepted} is accepted`);
  return facts.exchanges.some(({ endpoint, isRead }) => endpoint === ENDPOINT.vaults && isRead)
    ? confirmed('a vault was found by the configured parameter')
    : open('no vault was found');
}

/** The use of the key; `needed`: there is none; `accepted`: some requests at least need it. */
export type KeyState = 'accepted' | 'refused' | 'needed' | 'not needed' | 'open';

/** Judges the key by the requests to endpoints that take one. A single refused endpoint may be missing, or not be allowed. */
export function keyState(facts: Facts): KeyState {
  const [sent, keyless] = [factOf(facts, true), factOf(facts, false)];
  if (sent.refused && !sent.answered) return 'refused';
  if (keyless.answered && !keyless.refused) return 'not needed';
  if (sent.answered && keyless.refused) return 'accepted';
  const isMissing = facts.input.upstream.apiKey === null;
  return isMissing && keyless.refused && !keyless.answered ? 'needed' : 'open';
}

function factOf({ exchanges }: Facts, withKey: boolean): { answered: boolean; refused: boolean } {
  const sent = exchanges.filter((one) => one.endpoint.takesKey && one.withKey === withKey);
  return {
    answered: sent.some(({ isRead }) => isRead),
    refused: sent.some(({ isKeyRefused }) => isKeyRefused),
  };
}

function judgeKey(facts: Facts): Judged {
  const keyless = factOf(facts, false);
  if (keyState(facts) === 'refused') return contradicted('the configured key is refused');
  if (keyless.answered) {
    return contradicted(`${keyless.refused ? 'some' : 'all'} endpoints answer without a key`);
  }
  if (!keyless.refused) return open('no request without a key was answered or refused');
  return confirmed('requests without a key are refused');
}

/** The domain of the first signed quote: `position` among the given names, from 1; 0: the configured one. */
export async function provenDomain({
  input,
  exchanges,
}: Facts): Promise<
  | { outcome: 'proven'; position: number; domain: QuoteDomain }
  | { outcome: 'unproven' | 'no quote' | 'no signer' }
> {
  const quote = exchanges.find(({ endpoint, isRead }) => endpoint === ENDPOINT.quotes && isRead)?.body;
  if (quote === undefined) return { outcome: 'no quote' };
  const quoteSigner = signerOf(quote, exchanges);
  if (quoteSigner === null) return { outcome: 'no signer' };
  const { quoteDomain } = input.upstream;
  for (const [position, domain] of [quoteDomain, ...input.domains, INTERFACE_DOMAIN].entries()) {
    if ((await validVerdict(quote, { quoteSigner, domain })) !== null)
      return { outcome: 'proven', position, domain };
  }
  return { outcome: 'unproven' };
}

function signerOf(quote: JsonValue, exchanges: readonly Exchange[]): string | null {
  const read = readQuoteAnswer(quote);
  const lists = exchanges.flatMap(({ endpoint, body }) => {
    const parsed = endpoint === ENDPOINT.chains && body !== undefined ? readChains(body) : null;
    return parsed !== null && 'value' in parsed ? parsed.value.entries : [];
  });
  if (!('value' in read)) return null;
  return lists.find(({ chainId }) => chainId === read.value.source.chainId)?.quoteSigner ?? null;
}

async function judgeDomain(facts: Facts): Promise<Judged> {
  const proven = await provenDomain(facts);
  switch (proven.outcome) {
    case 'no quote':
      return open('no quote was read: it takes --quote');
    case 'no signer':
      return open('no signer is published for the source chain of the quote');
    case 'unproven':
      return contradicted('the quote verifies under none of the names; try others with --quote-domain');
    case 'proven':
      return proven.position === 0
        ? confirmed('the quote verifies under the configured name')
        : contradicted('the quote verifies under another name than the configured one');
    default:
      return proven satisfies never;
  }
}

function judgeRead({ exchanges }: Facts, endpoints: readonly Exchange['endpoint'][]): Judged {
  const answered = exchanges.filter(
    ({ endpoint, body }) => endpoints.includes(endpoint) && body !== undefined,
  );
  if (answered.length === 0) return open('nothing was answered');
  const isWhole = ({ endpoint, body, isRead }: Exchange): boolean =>
    isRead && body !== undefined && reportMembers(endpoint.schema, body).unreadable.size === 0;
  const unread = answered.filter((exchange) => !isWhole(exchange)).map(({ endpoint }) => endpoint.title);
  return unread.length === 0
    ? confirmed('answers are read')
    : contradicted(`answers have members that cannot be read: ${[...new Set(unread)].join(', ')}`);
}
