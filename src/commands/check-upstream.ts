import type { Config } from '../config/config.ts';
import { provableDomain } from '../domain/quotes/quote-signature.ts';
import { type RouteDefinition, readRoute } from '../domain/quotes/route.ts';
import { UNKNOWN } from '../domain/subjects/kinds.ts';
import { intentId, type RouteService } from '../domain/subjects/subject.ts';
import { routesOf } from '../domain/subjects/subscription.ts';
import { extendDirectory } from '../domain/transfers/chains.ts';
import { contradictions, mergeTokens, parseChains, quoteSigners } from '../domain/transfers/discovered.ts';
import { messageOf } from '../errors.ts';
import { pollPartnerRoute } from '../pollers/partner-route.ts';
import { pollOpenStatus } from '../pollers/poll-subject.ts';
import { pollRoute } from '../pollers/route.ts';
import { UpstreamClient } from '../upstream/client/client.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';
import { OPEN_QUOTES_TIMEOUT_MS, OpenQuotesClient } from '../upstream/client/open-quotes-client.ts';
import { QuoteSigners } from '../upstream/client/quote-signers.ts';
import { count, failed, type LiveCheck, seconds } from './check-live.ts';

/** An id that no transfer has: a key that works gets `unknown` for it. */
const NOBODYS_HASH = `0x${'0'.repeat(64)}`;

/** Checks of the upstream and of its other services. */
export function upstreamChecks(config: Config): LiveCheck[] {
  const { statusSource } = config.upstream;
  return [
    ...(statusSource === 'open' ? [] : [statusCheck(config)]),
    ...(statusSource === 'v1' ? [] : openStatusChecks(config)),
    discoveryCheck(config),
    gatewayCheck(config),
    ...quotingChecks(config),
    ...partnerChecks(config),
  ];
}

function statusCheck(config: Config): LiveCheck {
  return {
    name: `upstream ${config.upstream.baseUrl}`,
    probe: (signal) =>
      withClient(config, async (client) => {
        const { durationMs, dateMs } = await client.status({ intentHash: NOBODYS_HASH }, { signal });
        const clock =
          dateMs === null
            ? 'its responses have no time'
            : `its clock is ${seconds(dateMs - Date.now())} from ours (to a second)`;
        return { ok: true, detail: `answers in ${Math.round(durationMs)} ms and takes the key; ${clock}` };
      }),
  };
}

/** Requests a transfer at the open source: the first of the config, else one that nobody has, which it must not know. */
function openStatusChecks(config: Config): LiveCheck[] {
  const { quotesUrl, timeoutMs, proxy } = config.upstream;
  if (quotesUrl === null) return [];
  const intent = config.subscriptions.flatMap(({ intents }) => intents)[0];
  return [
    {
      name: `statuses without a key, ${quotesUrl}`,
      probe: async (signal) => {
        const client = new OpenQuotesClient({ quotesUrl, timeoutMs, proxy });
        try {
          const { records } = await pollOpenStatus(client, intentId(intent ?? NOBODYS_HASH), signal);
          const isShown = records.some(({ status }) => status.toLowerCase() !== UNKNOWN);
          if (isShown) return { ok: true, detail: 'answers, with the status of the first intent' };
          const detail = intent === undefined ? '' : ', but does not know the first intent yet';
          return { ok: true, detail: `answers${detail}` };
        } finally {
          await client.close();
        }
      },
    },
  ];
}

/** Reports the upstream's list. An incomplete list is no fault, as built-in values fill it; a refused key is one. */
function discoveryCheck(config: Config): LiveCheck {
  return {
    name: 'chains and tokens',
    probe: (signal) =>
      withClient(config, async (client) => {
        const chains = (await client.chains({ signal })).value;
        const tokens = (await client.tokens({ signal })).value;
        const [listed, merged] = [parseChains(chains.entries), mergeTokens([], tokens.entries)];
        const skipped = listed.skipped + merged.skipped + chains.unreadable.length + tokens.unreadable.length;
        const found = { chains: listed.entries, tokens: merged.entries };
        const contradicted = contradictions(extendDirectory(config), found).length;
        const detail = [
          `${count(found.chains.length, 'chain')}, ${quoteSigners(found.chains).size} with quoteSigner`,
          count(found.tokens.length, 'token'),
          ...(skipped === 0 ? [] : [`${skipped} that are incomplete`]),
          ...(contradicted === 0 ? [] : [`${contradicted} with other decimals than are known`]),
        ];
        return { ok: true, detail: detail.join('; ') };
      }),
    explain: (error) => {
      const finding = failed(error);
      return finding.refused ? finding : { ok: true, detail: `those that are built in: ${messageOf(error)}` };
    },
  };
}

function gatewayCheck(config: Config): LiveCheck {
  const name = `deposit gateway ${config.upstream.gateway.vaultPath}`;
  const vault = config.subscriptions.flatMap((subscription) => subscription.vaults)[0];
  const job = config.subscriptions
    .flatMap((subscription) => subscription.gaslessJobs)
    .find(({ endpoint }) => endpoint === 'gateway');
  if (vault === undefined && job === undefined) {
    const detail = 'not checked: no vault and no gateway job is subscribed';
    return { name, probe: async () => ({ ok: true, detail }) };
  }
  return {
    name,
    probe: (signal) =>
      withClient(config, async (client) => {
        const { durationMs } = vault
          ? await client.vault(vault, { signal })
          : await client.gaslessJob(job?.id ?? '', { signal });
        return { ok: true, detail: `answers in ${Math.round(durationMs)} ms` };
      }),
    explain: (error) =>
      error instanceof UpstreamFailure && error.code === 'not-found'
        ? { ok: true, detail: 'answers, but does not know the first subject yet' }
        : failed(error),
  };
}

/** Prices the first route of the config that the open service prices; nothing where there is none. */
function quotingChecks(config: Config): LiveCheck[] {
  const { quotesUrl, dAppId, proxy } = config.upstream;
  const route = firstRoute(config, 'open');
  if (quotesUrl === null || route === undefined) return [];
  return [
    {
      name: `open quoting service ${quotesUrl}`,
      probe: async (signal) => {
        const client = new OpenQuotesClient({ quotesUrl, timeoutMs: OPEN_QUOTES_TIMEOUT_MS, proxy });
        try {
          const service = { client, dAppId, directory: extendDirectory(config) };
          const { records, useless } = await pollRoute(service, { route, nowMs: Date.now() }, signal);
          if (useless) throw useless;
          const solvers = readRoute(records[0]?.raw ?? {})?.solvers ?? 0;
          return { ok: true, detail: `answers; ${count(solvers, 'solver')} for the route ${route.name}` };
        } finally {
          await client.close();
        }
      },
    },
  ];
}

/** Prices the first route of the config that is priced with the key; nothing where there is none. */
function partnerChecks(config: Config): LiveCheck[] {
  const route = firstRoute(config, 'v1');
  if (route === undefined) return [];
  return [
    {
      name: `prices with the key, ${config.upstream.baseUrl}/v1/quotes`,
      probe: (signal) =>
        withClient(config, async (client) => {
          const pricing = {
            client,
            signers: new QuoteSigners({ client, domain: provableDomain(config.upstream.quoteDomain) }),
            slot: async () => {},
            dAppId: config.upstream.dAppId,
            directory: extendDirectory(config),
          };
          const response = await pollPartnerRoute(pricing, { route, nowMs: Date.now() }, signal);
          if (response.useless) throw response.useless;
          const record = readRoute(response.records[0]?.raw ?? {});
          const quotes = count(record?.solvers ?? 0, 'signed quote');
          const { name } = config.upstream.quoteDomain;
          const flaw = `, signed under another name than ${JSON.stringify(name)}: set upstream.quoteDomain`;
          const isUnverified = record?.unverified === true;
          return {
            ok: !isUnverified,
            detail: `answers; ${quotes} for the route ${route.name}${isUnverified ? flaw : ''}`,
          };
        }),
    },
  ];
}

function firstRoute(config: Config, service: RouteService): RouteDefinition | undefined {
  return routesOf(config.subscriptions).find((route) => route.service === service);
}

async function withClient<T>(config: Config, probe: (client: UpstreamClient) => Promise<T>): Promise<T> {
  const client = new UpstreamClient(config.upstream);
  try {
    return await probe(client);
  } finally {
    await client.close();
  }
}
