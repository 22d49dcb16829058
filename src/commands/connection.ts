import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { UpstreamConfig } from '../config/config.ts';
import { CONFIG_DEFAULT, loadConfig } from '../config/file/load.ts';
import { buildUpstream, checkUpstream, upstreamSchema } from '../config/sections/upstream.ts';
import { UpstreamClient } from '../upstream/client/client.ts';

/** Options that locate the upstream. */
export type ConnectionOptions = { config?: string; baseUrl?: string; apiKey?: string };

const FLAGS: Readonly<Record<string, string>> = {
  baseUrl: '--base-url',
  apiKey: '--api-key (or UPSTREAM_API_KEY)',
};

/** Adds the options that locate the upstream. */
export function withConnection(command: Command): Command {
  return command
    .option('-c, --config <file>', `config file whose upstream is asked (default: ${CONFIG_DEFAULT})`)
    .option('--base-url <url>', 'ask this upstream instead of a config’s')
    .option(
      '--api-key <key>',
      'its API key; UPSTREAM_API_KEY in the environment keeps it out of process lists',
    );
}

/** Reads the upstream from the options, else from a config file. Throws a ConfigError, or an Error that names the flag. */
export async function upstreamOf(
  options: ConnectionOptions,
  env: NodeJS.ProcessEnv,
): Promise<UpstreamConfig> {
  const { config, baseUrl, apiKey } = options;
  if (baseUrl === undefined) {
    if (apiKey !== undefined) throw new Error('found --api-key alone, expected --base-url with it');
    return (await loadConfig(resolve(config ?? CONFIG_DEFAULT), env)).upstream;
  }
  if (config !== undefined) throw new Error('found --config and --base-url, expected one of them');
  const section = { baseUrl, apiKey: apiKey ?? env.UPSTREAM_API_KEY ?? '' };
  const parsed = upstreamSchema.safeParse(section);
  const faults = parsed.success
    ? checkUpstream(section)
    : parsed.error.issues.map(({ path, message }) => ({ path, expected: message }));
  const [fault] = faults;
  if (fault !== undefined || !parsed.success) {
    throw new Error(`${FLAGS[String(fault?.path[0])]}: expected ${fault?.expected}`);
  }
  return buildUpstream(parsed.data);
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
