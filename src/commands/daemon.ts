import { type Command, InvalidArgumentError, Option } from 'commander';
import { type AddressOptions, daemonAddress } from '../client/address.ts';
import { ApiClient } from '../client/api-client.ts';
import { CONFIG_DEFAULT } from '../config/file/load.ts';
import { MOMENT_EXPECTED, parseMoment } from '../operations/moment.ts';

/** The options of a command that asks a running daemon. */
export type DaemonOptions = AddressOptions & { json?: true };

/** Adds the options that say which daemon is asked, and how its answer is shown. */
export function withDaemon(command: Command): Command {
  return command
    .addOption(
      new Option('--url <url>', 'the daemon to ask (default: the server of the config)').env(
        'INTENTWATCH_URL',
      ),
    )
    .option('-c, --config <file>', `config file whose server is asked (default: ${CONFIG_DEFAULT})`)
    .option('--allow-insecure', 'send the token to another machine by plain http')
    .option('--json', 'print JSON, as the API answers it');
}

/** True when the options name a daemon by its URL. */
export function isRemote({ url }: DaemonOptions): boolean {
  return url !== undefined && url !== '';
}

/** The client for the daemon that the options name; the token is read from INTENTWATCH_TOKEN. */
export async function clientOf(options: DaemonOptions): Promise<ApiClient> {
  return new ApiClient(await daemonAddress(options, process.env));
}

/** Prints an answer: as JSON where that is requested, else as text for people. */
export function print(options: DaemonOptions, answer: { raw: unknown; text: () => string }): void {
  say(options.json === true ? JSON.stringify(answer.raw, null, 2) : answer.text());
}

/** Prints lines. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Says on stderr what is no part of the answer. */
export function remark(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Reads how many are wanted. */
export function count(text: string): number {
  const read = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : null;
  if (read === null) throw new InvalidArgumentError('expected a whole number from 1 to 999999');
  return read;
}

/** Reads `key=value`, once or several times. */
export function pair(text: string, before: readonly string[] = []): string[] {
  if (!/^[^=]+=/.test(text)) throw new InvalidArgumentError('expected key=value');
  return [...before, text];
}

/** One page of a list, and where the next begins. */
type Page<T> = { items: readonly T[]; next: string | null };

/** So many of a list as are wanted, over as many pages as they stand on. */
export async function pagesOf<T>(
  limit: number,
  {
    most,
    from,
    ask,
  }: { most: number; from?: string; ask: (limit: number, cursor?: string) => Promise<Page<T>> },
): Promise<{ items: T[]; next: string | null }> {
  const items: T[] = [];
  let next: string | null = from ?? null;
  do {
    const page: Page<T> = await ask(Math.min(most, limit - items.length), next ?? undefined);
    items.push(...page.items);
    next = page.next;
  } while (next !== null && items.length < limit);
  return { items, next };
}

/** All that a stream says, as text. */
export async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

/** Reads a moment from the command line; the daemon reads it by its own clock. */
export function moment(text: string): string {
  if (parseMoment(text) === null) throw new InvalidArgumentError(`expected ${MOMENT_EXPECTED}`);
  return text;
}
