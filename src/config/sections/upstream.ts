import { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import { INTERFACE_DOMAIN } from '../../domain/quotes/quote-signature.ts';
import { STATUS_SOURCES } from '../../domain/subjects/kinds.ts';
import { Secret } from '../../secret.ts';
import type { UpstreamConfig } from '../config.ts';
import { durationField, flagField, mapping, rateField, textField } from '../fields/fields.ts';
import { baseUrlField, httpUrl, isLoopback, proxyField } from '../fields/http.ts';
import { type ConfigPath, type Fault, items, member } from '../file/errors.ts';

const MAX_REQUESTS_PER_SECOND = 10_000;

const domainText = textField({
  pattern: /^[\x20-\x7e]{1,64}$/,
  expected: 'a text of 1 to 64 printable ASCII characters',
});

/** A path with one hole, perhaps the prefix, and perhaps a query. */
function pathField(hole: string) {
  return textField({
    pattern: new RegExp(
      `^(?=/)(?=.*\\{${hole}\\})(?!.*/\\.{1,2}(?:[/?]|$))(?:[\\w.~/?=&:,@-]|\\{${hole}\\}|\\{prefix\\})+$`,
    ),
    expected: `a path that begins with / and contains {${hole}}, of letters, digits, .~/?=&:,@_- and {prefix}`,
  });
}

const GENERATIONS = {
  legacy: { vault: '/{prefix}/v2/depositAddresses/{vaultAddress}', job: '/{prefix}/v1/gasless/jobs/{id}' },
  current: { vault: '/v1/{prefix}/{vaultAddress}', job: '/v1/{prefix}/status?id={id}' },
} as const;

const gatewaySchema = mapping({
  prefix: textField({
    pattern: /^(?!(?:\.{1,2}|v\d+|chains|tokens|quotes|intents|gasless)$)[a-z0-9._-]{1,64}$/i,
    expected:
      'a word of 1 to 64 letters, digits, dots, underscores and hyphens, other than v1, chains, tokens, quotes, intents and gasless',
  })
    .prefault('deposit-gateway')
    .meta({
      description:
        'The word in the paths of the deposit-vault endpoints, which is `deposit-gateway` in the interface; a deployment may have its own. Under `/v1` and this word no key is sent.',
      label: 'text',
    }),
  generation: z.enum(['legacy', 'current'], { error: '"legacy" or "current"' }).prefault('legacy').meta({
    description:
      'The generation of the paths: `legacy` (`/<prefix>/v2/depositAddresses/{vaultAddress}` and `/<prefix>/v1/gasless/jobs/{id}`) or `current` (`/v1/<prefix>/{vaultAddress}` and `/v1/<prefix>/status?id={id}`).',
  }),
  paths: mapping({
    vault: pathField('vaultAddress').optional().meta({
      description: 'The path of the vault lookup, in place of that of the generation.',
      label: 'path',
    }),
    job: pathField('id').optional().meta({
      description: 'The path of the job lookup, in place of that of the generation.',
      label: 'path',
    }),
  })
    .prefault({})
    .meta({ description: 'Paths that no generation has.' }),
  chainParam: textField({
    pattern: /^[A-Za-z0-9_.-]+$/,
    expected: 'the name of a query parameter (letters, digits, underscores, dots, hyphens)',
  })
    .prefault('sourceChainId')
    .meta({
      description: 'The query parameter that carries the chain on which a vault is funded.',
      label: 'text',
    }),
})
  .prefault({})
  .meta({ description: 'The names and paths of the deposit-vault endpoints.' });

export const upstreamSchema = mapping({
  baseUrl: baseUrlField.meta({
    description: 'Where the transfer service is. Plain http only on loopback or with `allowInsecure: true`.',
    label: 'URL',
  }),
  quotesUrl: baseUrlField.optional().meta({
    description:
      'Where the open quoting service is; needed by `routes` that it prices, and by `statusSource: open` and `both`.',
    label: 'URL',
  }),
  apiKey: textField({ pattern: /^[\x21-\x7e]+$/, expected: 'an API key of visible ASCII characters' })
    .transform((key) => new Secret(key))
    .optional()
    .meta({
      description:
        'The key that is sent as `x-api-key`. Without it, none is sent: what the service refuses then is reported once, and the rest goes on.',
      label: 'text',
      writeOnly: true,
    }),
  requestsPerSecond: rateField({ max: MAX_REQUESTS_PER_SECOND }).prefault(5).meta({
    description: 'The budget of the keyed v1 API: how often it may be requested, over all processes.',
  }),
  gatewayRequestsPerSecond: rateField({ max: MAX_REQUESTS_PER_SECOND }).prefault(2).meta({
    description: 'The budget of the deposit-vault endpoints, over all processes.',
  }),
  quotesRequestsPerSecond: rateField({ max: MAX_REQUESTS_PER_SECOND }).prefault(1).meta({
    description: 'The budget of the open quoting service, over all processes.',
  }),
  partnerQuotesRequestsPerSecond: rateField({ max: MAX_REQUESTS_PER_SECOND }).prefault(1).meta({
    description:
      'The budget of prices that are requested with the key (routes with `service: v1`), over all processes; apart from `requestsPerSecond`.',
  }),
  statusSource: z.enum(STATUS_SOURCES, { error: '"v1", "open" or "both"' }).prefault('v1').meta({
    description:
      'Where the status of transfers comes from: `v1`; `open`, `POST /api/v3/intents/intentStatus` at `quotesUrl`, which takes no key and knows transfers by their hash alone; or `both`: v1 decides, and the open source adds a status where that is a step forward.',
  }),
  openStatusRequestsPerSecond: rateField({ max: MAX_REQUESTS_PER_SECOND }).prefault(1).meta({
    description:
      'The budget of statuses from the open source, over all processes; apart from `quotesRequestsPerSecond`, though both go to `quotesUrl`.',
  }),
  dAppId: textField({
    pattern: /^[A-Za-z0-9._-]{1,64}$/,
    expected: 'a name of 1 to 64 letters, digits, dots, underscores and hyphens',
  })
    .prefault('intentwatch')
    .meta({
      description:
        'The name by which is known who requests the price of a route: `dAppID` of the open quoting service, `dappId` of `POST /v1/quotes`.',
      label: 'text',
    }),
  timeout: durationField({ min: '100ms', max: '5m' }).prefault('10s').meta({
    description: 'How long a request may take, from connecting to the end of the body.',
    label: 'duration',
  }),
  proxy: proxyField.optional().meta({
    description:
      'An http or https proxy through which the transfer service and the open quoting service are reached, with user and password where it requests them. Secret.',
    label: 'URL',
  }),
  quoteDomain: mapping({
    name: domainText.meta({
      description: 'The name, which is `ServiceQuoteV1` in the interface; a deployment may have its own.',
      label: 'text',
    }),
    version: domainText
      .prefault(INTERFACE_DOMAIN.version)
      .meta({ description: 'Its version.', label: 'text' }),
  })
    .optional()
    .meta({
      description:
        'The EIP-712 domain under which the service signs its quotes. Without it `ServiceQuoteV1` counts once a quote has verified under it; until then a quote of another signer is unverified, not invalid.',
    }),
  gateway: gatewaySchema,
  allowInsecure: flagField().prefault(false).meta({
    description: 'Allows plain http to a host that is not this machine. The API key then travels in clear.',
  }),
}).meta({
  description: 'The transfer service that is polled.',
  example: [
    {
      baseUrl: 'https://api.example.com',
      quotesUrl: 'https://quotes.example.com',
      apiKey: '${UPSTREAM_API_KEY}',
      requestsPerSecond: 5,
    },
  ],
});

/** Builds the upstream settings from the parsed section. */
export function buildUpstream(section: z.output<typeof upstreamSchema>): UpstreamConfig {
  return {
    baseUrl: section.baseUrl,
    quotesUrl: section.quotesUrl ?? null,
    apiKey: section.apiKey ?? null,
    requestsPerSecond: section.requestsPerSecond,
    gatewayRequestsPerSecond: section.gatewayRequestsPerSecond,
    quotesRequestsPerSecond: section.quotesRequestsPerSecond,
    partnerQuotesRequestsPerSecond: section.partnerQuotesRequestsPerSecond,
    statusSource: section.statusSource,
    openStatusRequestsPerSecond: section.openStatusRequestsPerSecond,
    dAppId: section.dAppId,
    timeoutMs: section.timeout,
    proxy: section.proxy ?? null,
    quoteDomain:
      section.quoteDomain === undefined
        ? { ...INTERFACE_DOMAIN, isExplicit: false }
        : { ...section.quoteDomain, isExplicit: true },
    gateway: gatewayOf(section.gateway),
  };
}

/** Builds the settings of the vault endpoints from the parsed section. */
export function gatewayOf({
  prefix,
  generation,
  paths,
  chainParam,
}: z.output<typeof gatewaySchema>): UpstreamConfig['gateway'] {
  const { vault, job } = GENERATIONS[generation];
  const named = (path: string): string => path.replaceAll('{prefix}', prefix);
  return { prefix, vaultPath: named(paths.vault ?? vault), jobPath: named(paths.job ?? job), chainParam };
}

/** Refuses plain http to another machine, because the key would travel in clear text. */
export function checkUpstream(section: JsonValue | undefined): Fault[] {
  if (member(section, 'allowInsecure') === true) return [];
  return ['baseUrl', 'quotesUrl'].flatMap((key) => {
    const text = member(section, key);
    const url = typeof text === 'string' ? httpUrl(text) : null;
    if (url?.protocol !== 'http:' || isLoopback(url)) return [];
    return [
      {
        path: [key],
        expected: 'an https:// URL (or allowInsecure: true), for the API key would travel in clear',
      },
    ];
  });
}

/** Lists of a subscription whose subjects v1 alone knows, except gasless jobs of the deposit gateway. */
const V1_SUBJECTS = ['wallets', 'sourceTxs', 'destinationTxs', 'quotes', 'gaslessJobs'];

/** Checks the source of statuses: the open one needs its address, and by itself knows no subject but intents. */
export function checkStatusSource(tree: JsonValue): Fault[] {
  const upstream = member(tree, 'upstream');
  const source = member(upstream, 'statusSource');
  if (source !== 'open' && source !== 'both') return [];
  const findings: Fault[] = [];
  if (member(upstream, 'quotesUrl') === undefined) {
    const found = `${source} without quotesUrl`;
    const expected = 'the URL of the open quoting service as quotesUrl, or statusSource: v1';
    findings.push({ path: ['upstream', 'statusSource'], found, expected });
  }
  if (source === 'both') return findings;
  for (const [index, subscription] of items(member(tree, 'subscriptions')).entries()) {
    for (const key of V1_SUBJECTS) {
      const place = items(member(subscription, key)).findIndex(
        (item) => member(item, 'endpoint') !== 'gateway',
      );
      if (place === -1) continue;
      const path: ConfigPath = ['subscriptions', index, key, place];
      findings.push({ path, found: `${key} beside upstream.statusSource: open`, expected: V1_NEEDED });
    }
  }
  return findings;
}

/** The subjects that `statusSource: open` permits, for messages. */
export const V1_NEEDED =
  'an intent, a gateway job, a vault or a route, or the statusSource v1 or both: the open source knows transfers by their hash alone';
