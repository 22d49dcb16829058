import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { parseRedisUrl, type RedisTarget } from '../config/redis-target.ts';
import { extendDirectory } from '../domain/chains.ts';
import { contradictions, quoteSigners, takeChains, takeTokens } from '../domain/discovered.ts';
import { readRoute } from '../domain/route.ts';
import { routesOf, subjectsOf } from '../domain/subscription.ts';
import { NameResolver } from '../network/resolver.ts';
import { secretsOfSmtpUrl } from '../notifiers/email/email.ts';
import { openMailTransport } from '../notifiers/email/transport.ts';
import { keptWithout } from '../notifiers/kept.ts';
import { printableLine } from '../notifiers/printable.ts';
import { pollRoute } from '../pollers/route.ts';
import { connect, disconnect, redisTimeMs } from '../store/connection.ts';
import { checkRedis } from '../store/startup-checks.ts';
import { UpstreamClient } from '../upstream/client.ts';
import { UpstreamFailure } from '../upstream/failure.ts';
import { OPEN_QUOTES_TIMEOUT_MS, OpenQuotesClient } from '../upstream/open-quotes-client.ts';
import { refusalSentence } from '../upstream/refusal.ts';
import { within } from '../within.ts';
import { EXIT } from './exit.ts';
import { CONFIG_DEFAULT } from './start.ts';

/** What one look at the outside found. `refused`: asking again does not help, the config has to change. */
type Finding = { name: string; ok: boolean; detail: string; refused?: true };

const TIMEOUT_MS = 10_000;

/** An id that no transfer has: a key that works gets `unknown` for it. */
const NOBODYS_HASH = `0x${'0'.repeat(64)}`;

/** `check`: says whether a config is right, and with `--live` whether all that it names can be reached. */
export function checkCommand(): Command {
  return new Command('check')
    .description('Check a config file; with --live also the upstream, Redis and SMTP that it names.')
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .option('--live', 'ask the upstream, Redis and SMTP')
    .action(check);
}

async function check(options: { config: string; live?: true }): Promise<void> {
  const config = await loadConfig(resolve(options.config), process.env);
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  say(`${printableLine(options.config)}: ok, ${describe(config)}`);
  if (!options.live) return;
  const target = parseRedisUrl(config.redis.url?.reveal() ?? '');
  const found = await Promise.all([
    checkUpstream(config),
    checkDiscovery(config),
    checkGateway(config),
    ...checkQuoting(config),
    target === null ? checkEmbedded(config) : checkExternal(target),
    checkSmtp(config),
  ]);
  // What answers, and even a path of the config, may hold what moves a terminal's cursor.
  const findings = found.map((finding) => ({
    ...finding,
    name: printableLine(finding.name),
    detail: printableLine(finding.detail),
  }));
  const width = Math.max(...findings.map((finding) => finding.name.length));
  for (const { name, ok, detail } of findings)
    say(`${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(width)}  ${detail}`);
  if (findings.some((finding) => !finding.ok)) process.exitCode = EXIT.tryAgain;
  if (findings.some((finding) => finding.refused === true)) process.exitCode = EXIT.badConfig;
}

function describe(config: Config): string {
  const named = config.subscriptions.reduce((sum, subscription) => sum + subjectsOf(subscription).length, 0);
  return [
    count(config.receivers.length, 'receiver'),
    count(config.subscriptions.length, 'subscription'),
    count(named, 'subject'),
  ].join(', ');
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

async function checkUpstream(config: Config): Promise<Finding> {
  const name = `upstream ${config.upstream.baseUrl}`;
  return withClient(config, async (client) => {
    const { durationMs, dateMs } = await client.status({ intentHash: NOBODYS_HASH });
    const clock =
      dateMs === null
        ? 'it tells no time'
        : `its clock is ${seconds(dateMs - Date.now())} from ours (to a second)`;
    return { name, ok: true, detail: `answers in ${Math.round(durationMs)} ms and takes the key; ${clock}` };
  }).catch((error: unknown) => failed(name, error));
}

/** Says what the upstream lists. What it does not is no fault: then what is built in is used. */
async function checkDiscovery(config: Config): Promise<Finding> {
  const name = 'chains and tokens';
  return withClient(config, async (client) => {
    const [chains, tokens] = [(await client.chains()).value, (await client.tokens()).value];
    const [listed, known] = [takeChains(chains.entries), takeTokens([], tokens.entries)];
    const skipped = listed.skipped + known.skipped + chains.unreadable.length + tokens.unreadable.length;
    const found = { chains: listed.entries, tokens: known.entries };
    const contradicted = contradictions(extendDirectory(config), found).length;
    const detail = [
      `${count(found.chains.length, 'chain')}, ${quoteSigners(found.chains).size} with quoteSigner`,
      count(found.tokens.length, 'token'),
      ...(skipped === 0 ? [] : [`${skipped} that say too little`]),
      ...(contradicted === 0 ? [] : [`${contradicted} with other decimals than are known`]),
    ];
    return { name, ok: true, detail: detail.join('; ') };
  }).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    return { name, ok: true, detail: `those that are built in: ${reason}` };
  });
}

async function checkGateway(config: Config): Promise<Finding> {
  const name = `deposit gateway ${config.upstream.vaultPath}`;
  const vault = config.subscriptions.flatMap((subscription) => subscription.vaults)[0];
  const job = config.subscriptions
    .flatMap((subscription) => subscription.gaslessJobs)
    .find(({ endpoint }) => endpoint === 'gateway');
  if (vault === undefined && job === undefined) {
    return { name, ok: true, detail: 'not asked: no vault and no gateway job is subscribed' };
  }
  return withClient(config, async (client) => {
    const { durationMs } = vault ? await client.vault(vault) : await client.gaslessJob(job?.id ?? '');
    return { name, ok: true, detail: `answers in ${Math.round(durationMs)} ms` };
  }).catch((error: unknown) => {
    if (error instanceof UpstreamFailure && error.code === 'not-found') {
      return { name, ok: true, detail: 'answers, but does not know the first subject yet' };
    }
    return failed(name, error);
  });
}

/** Prices the first route of the config; nothing where there is none. */
function checkQuoting(config: Config): Promise<Finding>[] {
  const { quotesUrl, dAppId, proxy } = config.upstream;
  const [route] = routesOf(config.subscriptions);
  if (quotesUrl === null || route === undefined) return [];
  const name = `open quoting service ${quotesUrl}`;
  const ask = async (): Promise<Finding> => {
    const client = new OpenQuotesClient({ quotesUrl, timeoutMs: OPEN_QUOTES_TIMEOUT_MS, proxy });
    try {
      const service = { client, dAppId, directory: extendDirectory(config) };
      const { records } = await pollRoute(service, route, new AbortController().signal);
      const solvers = readRoute(records[0]?.said ?? {})?.solvers ?? 0;
      return { name, ok: true, detail: `answers; ${count(solvers, 'solver')} for the route ${route.name}` };
    } catch (error) {
      return failed(name, error);
    } finally {
      await client.close();
    }
  };
  return [ask()];
}

async function withClient(
  config: Config,
  ask: (client: UpstreamClient) => Promise<Finding>,
): Promise<Finding> {
  const client = new UpstreamClient(config.upstream);
  try {
    return await ask(client);
  } finally {
    await client.close();
  }
}

async function checkExternal(target: RedisTarget): Promise<Finding> {
  const name = 'Redis (redis.url)';
  let redis: ReturnType<typeof connect> | null = null;
  let reason = `no answer within ${TIMEOUT_MS / 1_000} s`;
  try {
    redis = connect(target, {
      onTrouble: (trouble) => {
        reason = trouble;
      },
    });
    const findings = await within(checkRedis(redis), TIMEOUT_MS);
    if (findings === null) return { name, ok: false, detail: reason };
    const skewMs = (await redisTimeMs(redis)) - Date.now();
    const words = findings.map((finding) => finding.message).join('; ');
    return {
      name,
      ok: findings.every((finding) => !finding.fatal),
      detail: words || `reachable, keeps what it is given; its clock is ${seconds(skewMs)} from ours`,
    };
  } catch (error) {
    return failed(name, error);
  } finally {
    if (redis !== null) await disconnect(redis);
  }
}

async function checkEmbedded(config: Config): Promise<Finding> {
  const name = 'Redis (embedded)';
  try {
    const version = await redisServerVersion();
    await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
    await access(config.dataDir, constants.W_OK);
    return { name, ok: true, detail: `${version}; its data goes to ${config.dataDir}` };
  } catch (error) {
    return failed(name, error);
  }
}

async function redisServerVersion(): Promise<string> {
  const child = spawn('redis-server', ['--version'], { stdio: ['ignore', 'pipe', 'ignore'] });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  await new Promise<void>((done, fail) => {
    child.once('error', () =>
      fail(
        new Error(
          'redis-server is not installed; install it (Debian: apt-get install redis-server) or set redis.url',
        ),
      ),
    );
    child.once('close', () => done());
  });
  return `redis-server ${/v=(\S+)/.exec(said)?.[1] ?? 'of an unknown version'}`;
}

async function checkSmtp(config: Config): Promise<Finding> {
  const name = 'SMTP';
  if (config.smtp === null) return { name, ok: true, detail: 'not asked: the config has no smtp' };
  const names = new NameResolver({ timeoutMs: TIMEOUT_MS });
  const closing = new AbortController();
  const transport = openMailTransport({
    url: config.smtp.url,
    names,
    timeoutMs: TIMEOUT_MS,
    signal: closing.signal,
  });
  try {
    await transport.verify();
    return { name, ok: true, detail: 'reachable, takes the login' };
  } catch (error) {
    const { reason } = keptWithout(secretsOfSmtpUrl(config.smtp.url));
    return { name, ok: false, detail: reason(error instanceof Error ? error.message : String(error)) };
  } finally {
    closing.abort();
    names.close();
    transport.close();
  }
}

function failed(name: string, error: unknown): Finding {
  const refusal = error instanceof UpstreamFailure ? refusalSentence(error) : null;
  if (refusal !== null) return { name, ok: false, detail: refusal, refused: true };
  return { name, ok: false, detail: error instanceof Error ? error.message : String(error) };
}

function seconds(ms: number): string {
  return `${ms < 0 ? '-' : '+'}${(Math.abs(ms) / 1_000).toFixed(1)} s`;
}
