import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { CONFIG_DEFAULT } from '../client/address.ts';
import type { Config, UpstreamConfig } from '../config/config.ts';
import { loadConfig } from '../config/file/load.ts';
import { buildUpstream, checkUpstream, upstreamSchema } from '../config/sections/upstream.ts';
import { INTERFACE_DOMAIN } from '../domain/quotes/quote-signature.ts';
import { UpstreamClient } from '../upstream/client/client.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';

/** Options that locate the upstream. */
export type ConnectionOptions = { config?: string; baseUrl?: string; apiKey?: string; quoteDomain?: string };

const FLAGS: Readonly<Record<string, string>> = {
  baseUrl: '--base-url',
  apiKey: '--api-key (or UPSTREAM_API_KEY)',
};

/** Adds the options that locate the upstream. */
export function withConnection(command: Command): Command {
  return command
    .option('-c, --config <file>', `config file whose upstream is used (default: ${CONFIG_DEFAULT})`)
    .option('--base-url <url>', 'use this upstream instead of a config’s')
    .option('--api-key <key>', 'its API key; process lists do not show UPSTREAM_API_KEY in the environment');
}

/** Reads the upstream from the options, else from a config file. Throws a ConfigError, or an Error that names the flag. */
export async function upstreamOf(
  options: ConnectionOptions,
  env: NodeJS.ProcessEnv,
): Promise<UpstreamConfig> {
  const { upstream } = await sourceOf(options, env);
  return options.quoteDomain === undefined
    ? upstream
    : { ...upstream, quoteDomain: quoteDomainOf(options.quoteDomain) };
}

/** Adds the option that names the domain of quotes. */
export function withQuoteDomain(command: Command): Command {
  return command.option(
    '--quote-domain <name>',
    'the EIP-712 name under which quotes are signed, /2 behind it for version 2 (default: upstream.quoteDomain)',
  );
}

/** Reads `NAME` or `NAME/VERSION`. Throws an Error that names the flag. */
export function quoteDomainOf(text: string): UpstreamConfig['quoteDomain'] {
  const slash = text.lastIndexOf('/');
  const [name, version] =
    slash === -1 ? [text, INTERFACE_DOMAIN.version] : [text.slice(0, slash), text.slice(slash + 1)];
  if (![name, version].every((part) => /^[\x20-\x7e]{1,64}$/.test(part)))
    throw new Error(
      '--quote-domain: expected NAME or NAME/VERSION, each of 1 to 64 printable ASCII characters',
    );
  return { name, version, isExplicit: true };
}

/** The upstream of the options, and the config that names it; null where `--base-url` does. Throws as `upstreamOf`. */
export async function sourceOf(
  options: ConnectionOptions,
  env: NodeJS.ProcessEnv,
): Promise<{ upstream: UpstreamConfig; config: Config | null }> {
  const { config, baseUrl, apiKey } = options;
  if (baseUrl === undefined) {
    if (apiKey !== undefined) throw new Error('found --api-key alone, expected --base-url with it');
    const loaded = await loadConfig(resolve(config ?? CONFIG_DEFAULT), env);
    return { upstream: loaded.upstream, config: loaded };
  }
  if (config !== undefined) throw new Error('found --config and --base-url, expected one of them');
  const key = apiKey ?? env.UPSTREAM_API_KEY;
  const section = { baseUrl, ...(key === undefined ? {} : { apiKey: key }) };
  const parsed = upstreamSchema.safeParse(section);
  const faults = parsed.success
    ? checkUpstream(section)
    : parsed.error.issues.map(({ path, message }) => ({ path, expected: message }));
  const [fault] = faults;
  if (fault !== undefined || !parsed.success) {
    throw new Error(`${FLAGS[String(fault?.path[0])]}: expected ${fault?.expected}`);
  }
  return { upstream: buildUpstream(parsed.data), config: null };
}

/** Runs a task with a client of this upstream, and closes the client afterwards. */
export async function withClient<T>(
  upstream: UpstreamConfig,
  use: (client: UpstreamClient) => Promise<T>,
): Promise<T> {
  const client = new UpstreamClient(upstream);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** Limits of a caller's retries. */
export type Patience = {
  /** Requests in all, the first included. */
  attempts: number;
  /** Wait after the first failure; it doubles with each further one. */
  firstDelayMs: number;
  /** When the upstream requests a longer pause, the failure is passed on. */
  maxDelayMs: number;
};

/** Four requests within about five seconds. */
const USUAL_PATIENCE: Patience = { attempts: 4, firstDelayMs: 500, maxDelayMs: 30_000 };

/**
 * Repeats a request until it is answered, the patience ends, or a failure advises against it. `send` must send the
 * same every time. Throws the last UpstreamFailure, or the signal's reason when the caller gave up.
 */
export async function retry<T>(
  send: () => Promise<T>,
  { patience = USUAL_PATIENCE, signal }: { patience?: Patience; signal?: AbortSignal | undefined } = {},
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || attempt >= patience.attempts) throw error;
      if (error.advice === 'fix' || error.advice === 'never') throw error;
      const backoffMs = Math.min(patience.firstDelayMs * 2 ** (attempt - 1), patience.maxDelayMs);
      const waitMs = Math.max(backoffMs, error.retryAfterMs ?? 0);
      if (waitMs > patience.maxDelayMs) throw error;
      await wait(waitMs, signal);
    }
  }
}

async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    // The timer wraps the reason; callers expect their own.
    signal?.throwIfAborted();
    throw error;
  }
}
