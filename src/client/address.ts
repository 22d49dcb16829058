import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isLoopback } from '../config/fields/http.ts';
import { member } from '../config/file/errors.ts';
import { serverSchema } from '../config/sections/server.ts';
import { BadSettingError } from '../exit.ts';
import { Secret } from '../secret.ts';

/** Address of a running daemon, without a slash at its end, the token for it, and what is expected if none answers. */
export type DaemonAddress = { url: string; token: Secret | null; expected?: string };

/** Options of a command that name the daemon; without `config`, the config of the working directory. */
export type AddressOptions = { url?: string; config?: string; allowInsecure?: true };

/** Config file of a command that names none. */
export const CONFIG_DEFAULT = './intentwatch.yaml';

/** Finds the daemon's address: from its URL, else from the `server` of a config, else the default. */
export async function daemonAddress(
  { url, config, allowInsecure }: AddressOptions,
  env: NodeJS.ProcessEnv,
): Promise<DaemonAddress> {
  const token = readToken(env.INTENTWATCH_TOKEN);
  const isNamed = url !== undefined && url !== '';
  const found = isNamed ? readUrl(url) : await urlOfConfig(config, env);
  const isOpen = found.protocol === 'http:' && !isLoopback(found);
  if (isOpen && token !== null && allowInsecure !== true) {
    throw new BadSettingError(
      `found http:// and the host ${found.hostname}, expected https:// for another machine, or --allow-insecure: the token would travel in clear`,
    );
  }
  const address = { url: `${found.origin}${found.pathname.replace(/\/+$/, '')}`, token };
  return isNamed ? address : { ...address, expected: expectedAt(config) };
}

/** A daemon has the `server` of its start, which its file may have changed since. */
function expectedAt(config: string | undefined): string {
  return config !== undefined || existsSync(CONFIG_DEFAULT)
    ? `that is the server of ${config ?? CONFIG_DEFAULT}, and a daemon uses the one that it was started with: expected it to run there, or its address as --url`
    : `found no ${CONFIG_DEFAULT}, so that is the default: expected --config with the file of the daemon, or its address as --url`;
}

function readToken(text: string | undefined): Secret | null {
  if (text === undefined || text === '') return null;
  if (/^[\x21-\x7e]{16,}$/.test(text)) return new Secret(text);
  throw new BadSettingError(
    'INTENTWATCH_TOKEN: found something else, expected a token of 16 or more visible ASCII characters',
  );
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isBare = url !== null && url.username === '' && url.password === '' && !/[?#]/.test(text);
  if (url !== null && /^https?:$/.test(url.protocol) && isBare) return url;
  // The found text is not quoted: it may hold a password.
  throw new BadSettingError(
    '--url: expected the address of a daemon like https://intentwatch.example.com, without user, query or fragment; the token is read from INTENTWATCH_TOKEN',
  );
}

/** Reads only two members of a config: a client need not have the daemon's secrets. */
async function urlOfConfig(config: string | undefined, env: NodeJS.ProcessEnv): Promise<URL> {
  const file = config ?? CONFIG_DEFAULT;
  const isThere = config !== undefined || existsSync(file);
  const server = isThere ? await serverOf(file, env) : serverSchema.parse({});
  const { host, port } = server;
  if (port === 0)
    throw new BadSettingError(
      `${file}: found server.port 0, which takes a free one, expected --url with the address that the daemon has logged`,
    );
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return new URL(`http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`);
}

async function serverOf(file: string, env: NodeJS.ProcessEnv): Promise<{ host: string; port: number }> {
  // Only here: most commands are given the address, or find no config.
  const { readConfigText } = await import('../config/file/load.ts');
  const { readSource } = await import('../config/file/source.ts');
  const source = readSource(await readConfigText(file), { env, folder: dirname(resolve(file)) });
  const { tree, problems } = source;
  const [problem] = problems;
  if (tree === null && problem !== undefined) {
    const { line, column } = source.positionOf(problem.offset);
    throw new BadSettingError(
      `${file}:${line}:${column}: ${problem.message}; the daemon goes on with the config before, and its address is read from this file, so expected this mended, or --url`,
    );
  }
  const server = member(tree ?? undefined, 'server');
  const [host, port] = [member(server, 'host'), member(server, 'port')];
  const read = serverSchema.safeParse({
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: typeof port === 'string' ? Number(port) : port }),
  });
  if (read.success) return read.data;
  const wrong = read.error.issues.map(({ path }) => `server.${String(path[0])}`).join(' and ');
  throw new BadSettingError(
    `${file}: found no address in ${wrong}, expected one as the daemon reads it (intentwatch check), or --url`,
  );
}
