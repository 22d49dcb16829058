import type { GatewayConfig } from '../../config/config.ts';
import { gatewayOf } from '../../config/sections/upstream.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { OpenQuotesClient } from '../../upstream/client/open-quotes-client.ts';
import { CHAINS, TOKENS } from '../../upstream/wire/chain-list.ts';
import { GATEWAY_JOB, VAULT } from '../../upstream/wire/gateway-record.ts';
import { OPEN_QUOTES } from '../../upstream/wire/open-quote.ts';
import { OPEN_STATUS } from '../../upstream/wire/open-status.ts';
import { QUOTE_ANSWER, type QuoteRequest } from '../../upstream/wire/quote.ts';
import {
  readStatusPage,
  STATUS_PAGE,
  type StatusQuery,
  type StatusRecord,
} from '../../upstream/wire/status-page.ts';
import type { Exchange, ProbedEndpoint, ProbeRun } from './probe-run.ts';

/** Ids that no subject has. */
const NOBODYS = {
  hash: `0x${'0'.repeat(64)}`,
  job: '00000000-0000-0000-0000-000000000000',
  vault: { address: `0x${'0'.repeat(40)}`, chainId: 1 },
};

/** Most results of a page, of which the interface allows 50. */
const FULL_PAGE = 50;

/** Size of the page that shows that `limit` counts, and has a cursor. */
export const SMALL_PAGE = 2;

/** Names of the query parameter for a vault's chain that are tried in place of the configured one. */
const CHAIN_PARAMS = ['sourceChainId', 'chainId', 'sourceChainID'];

const chains: ProbedEndpoint = {
  title: 'GET /v1/chains',
  schema: CHAINS,
  endpointGroup: 'status',
  takesKey: true,
  run: async (probe) => {
    await probe.sendBothWays({
      endpoint: chains,
      purpose: 'list',
      call: ({ upstream }, options) => upstream.chains(options),
    });
  },
};

const tokens: ProbedEndpoint = {
  title: 'GET /v1/tokens',
  schema: TOKENS,
  endpointGroup: 'status',
  takesKey: true,
  run: async (probe) => {
    await probe.sendBothWays({
      endpoint: tokens,
      purpose: 'list',
      call: ({ upstream }, options) => upstream.tokens(options),
    });
  },
};

const intents: ProbedEndpoint = {
  title: 'GET /v1/intents/status?intentHash',
  schema: STATUS_PAGE,
  endpointGroup: 'status',
  takesKey: true,
  run: async (probe) => {
    const call = (intentHash: string) =>
      requestOf(intents, intentHash === NOBODYS.hash ? 'nobody' : 'intent', { intentHash });
    await probe.sendBothWays(call(NOBODYS.hash));
    for (const hash of probe.input.intents) await probe.send(call(hash));
  },
};

const wallets: ProbedEndpoint = {
  title: 'GET /v1/intents/status?wallet',
  schema: STATUS_PAGE,
  endpointGroup: 'status',
  takesKey: true,
  run: async (probe) => {
    for (const wallet of probe.input.wallets) {
      const requestFor = (purpose: string, query: { status?: string; cursor?: string; limit: number }) => ({
        ...requestOf(wallets, purpose, { wallet, ...query }),
        variant: wallet,
      });
      const page = await probe.sendBothWays(requestFor('page', { limit: FULL_PAGE }));
      const small = await probe.send(requestFor('limit', { limit: SMALL_PAGE }));
      const status = recordsOf(page)[0]?.status;
      if (status !== undefined) await probe.send(requestFor('status', { status, limit: FULL_PAGE }));
      const before = pageBefore(small, page);
      const cursor = cursorOf(before);
      const limit = before === small ? SMALL_PAGE : FULL_PAGE;
      if (cursor !== null) await probe.send(requestFor('cursor', { cursor, limit }));
    }
  },
};

const jobs: ProbedEndpoint = {
  title: 'gasless job of the deposit gateway',
  schema: GATEWAY_JOB,
  endpointGroup: 'gateway',
  takesKey: false,
  run: async (probe) => {
    const id = probe.input.jobs[0] ?? NOBODYS.job;
    for (const { name, gateway } of generationsOf(probe.input.upstream.gateway)) {
      await probe.send({
        endpoint: jobs,
        purpose: name,
        gateway,
        call: ({ upstream }, options) => upstream.gaslessJob(id, options),
      });
    }
  },
};

const vaults: ProbedEndpoint = {
  title: 'vault of the deposit gateway',
  schema: VAULT,
  endpointGroup: 'gateway',
  takesKey: false,
  run: async (probe) => {
    const vault = probe.input.vaults[0] ?? NOBODYS.vault;
    for (const { name, gateway } of generationsOf(probe.input.upstream.gateway)) {
      const send = (chainParam: string, variant: string) =>
        probe.send({
          endpoint: vaults,
          purpose: name,
          variant,
          gateway: { ...gateway, chainParam },
          call: ({ upstream }, options) => upstream.vault(vault, options),
        });
      const exchange = await send(gateway.chainParam, '');
      if (exchange?.failure !== 'invalid-request') continue;
      for (const other of CHAIN_PARAMS.filter((one) => one !== gateway.chainParam)) await send(other, other);
    }
  },
};

const quotes: ProbedEndpoint = {
  title: 'POST /v1/quotes',
  schema: QUOTE_ANSWER,
  endpointGroup: 'partner-quotes',
  takesKey: true,
  run: async (probe) => {
    const { quote } = probe.input;
    if (quote === null) return;
    await probe.sendBothWays({
      endpoint: quotes,
      purpose: 'price',
      call: ({ upstream }, options) => upstream.quote(quote, options),
    });
  },
};

const openQuotes: ProbedEndpoint = {
  title: 'POST /api/v3/quotes/exactIn',
  schema: OPEN_QUOTES,
  endpointGroup: 'quotes',
  takesKey: false,
  run: async (probe) => {
    const { quote, upstream } = probe.input;
    if (quote?.type !== 'exact-in' || upstream.quotesUrl === null) return;
    await probe.send({
      endpoint: openQuotes,
      purpose: 'price',
      call: ({ openQuotes: client }, options) => openService(client).exactIn(openRequestOf(quote), options),
    });
  },
};

const openStatus: ProbedEndpoint = {
  title: 'POST /api/v3/intents/intentStatus',
  schema: OPEN_STATUS,
  endpointGroup: 'open-status',
  takesKey: false,
  run: async (probe) => {
    if (probe.input.upstream.quotesUrl === null) return;
    for (const hash of probe.input.intents) {
      await probe.send({
        endpoint: openStatus,
        purpose: 'intent',
        call: ({ openQuotes: client }, options) => openService(client).intentStatus(hash, options),
      });
    }
  },
};

function openService(client: OpenQuotesClient | null): OpenQuotesClient {
  if (client === null) throw new Error('found no open quoting service, expected one');
  return client;
}

/** The endpoints of a probe, in the order of their requests. */
export const PROBED: readonly ProbedEndpoint[] = [
  chains,
  tokens,
  intents,
  wallets,
  jobs,
  vaults,
  quotes,
  openQuotes,
  openStatus,
];

/** The endpoints that assumptions are judged by. */
export const ENDPOINT = { chains, tokens, intents, wallets, jobs, vaults, quotes, openStatus } as const;

function requestOf(
  endpoint: ProbedEndpoint,
  purpose: string,
  query: StatusQuery,
): Parameters<ProbeRun['send']>[0] {
  return { endpoint, purpose, call: ({ upstream }, options) => upstream.status(query, options) };
}

/** Records of an answer of the status endpoint. */
export function recordsOf(exchange: Exchange | null): StatusRecord[] {
  const parsed = exchange?.body === undefined ? null : readStatusPage(exchange.body);
  return parsed !== null && 'value' in parsed ? parsed.value.records : [];
}

/** The page whose cursor is followed: the small one, if it has one. */
export function pageBefore(small: Exchange | null, page: Exchange | null): Exchange | null {
  return cursorOf(small) === null ? page : small;
}

function cursorOf(exchange: Exchange | null): string | null {
  const cursor =
    exchange?.isRead && isJsonObject(exchange.body ?? null) ? readStatusPage(exchange.body ?? null) : null;
  return cursor !== null && 'value' in cursor ? cursor.value.nextCursor : null;
}

/** A generation of the paths of the deposit gateway; `configured`: paths that no generation has. */
type PathGeneration = { name: 'legacy' | 'current' | 'configured'; gateway: GatewayConfig };

/** The configured paths of the deposit gateway first, then those of each other generation. */
export function generationsOf(configured: GatewayConfig): PathGeneration[] {
  const { prefix, chainParam } = configured;
  const all = (['legacy', 'current'] as const).map((generation) => ({
    name: generation,
    gateway: gatewayOf({ prefix, generation, paths: {}, chainParam }),
  }));
  const isSame = ({ gateway }: { gateway: GatewayConfig }): boolean =>
    gateway.vaultPath === configured.vaultPath && gateway.jobPath === configured.jobPath;
  const own: PathGeneration = all.find(isSame) ?? { name: 'configured', gateway: configured };
  return [own, ...all.filter((one) => !isSame(one))];
}

function openRequestOf(quote: Extract<QuoteRequest, { type: 'exact-in' }>) {
  const { dappId, source, destination } = quote;
  return {
    dAppID: dappId,
    intentExecutionTypes: ['SELF_PUBLISH' as const],
    quoteRequest: {
      sourceChainID: source.chainId,
      destinationChainID: destination.chainId,
      sourceToken: source.token,
      destinationToken: destination.token,
      sourceAmount: source.amount,
      funder: source.funder,
      recipient: destination.recipient,
    },
  };
}
