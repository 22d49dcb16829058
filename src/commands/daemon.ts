import { type Command, InvalidArgumentError, Option } from 'commander';
import { type AddressOptions, CONFIG_DEFAULT, daemonAddress } from '../client/address.ts';
import { ApiClient } from '../client/api-client.ts';
import { parseTime, TIME_EXPECTED } from '../operations/time.ts';

/** Options of a command that sends a request to a running daemon. */
export type DaemonOptions = AddressOptions & { json?: true };

/** Adds the options for the daemon's address and for the form of its answer. */
export function withDaemon(command: Command): Command {
  return command
    .addOption(
      new Option('--url <url>', 'the address of the daemon (default: the server of the config)').env(
        'INTENTWATCH_URL',
      ),
    )
    .option('-c, --config <file>', `config file whose server is used (default: ${CONFIG_DEFAULT})`)
    .option('--allow-insecure', 'send the token to another machine by plain http')
    .option('--json', 'print JSON, as the API answers it');
}

/** True when the options name a daemon by its URL. */
export function isRemote({ url }: DaemonOptions): boolean {
  return url !== undefined && url !== '';
}

/** Client for the daemon that the options name; the token comes from INTENTWATCH_TOKEN. */
export async function clientOf(options: DaemonOptions): Promise<ApiClient> {
  return new ApiClient(await daemonAddress(options, process.env));
}

/** Prints an answer as JSON where the options request it, else as text. */
export function print(options: DaemonOptions, answer: { raw: unknown; text: () => string }): void {
  writeLine(options.json === true ? JSON.stringify(answer.raw, null, 2) : answer.text());
}

/** Prints lines to stdout. */
export function writeLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints to stderr a remark that is no part of the answer. */
export function remark(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Parses a number of items. */
export function count(text: string): number {
  const read = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : null;
  if (read === null) throw new InvalidArgumentError('expected a whole number from 1 to 999999');
  return read;
}

/** Parses `key=value`, once or several times. */
export function pair(text: string, before: readonly string[] = []): string[] {
  if (!/^[^=]+=/.test(text)) throw new InvalidArgumentError('expected key=value');
  return [...before, text];
}

type ItemPage<T> = { items: readonly T[]; next: string | null };

/** Reads up to `limit` items of a list, over several pages. */
export async function pagesOf<T>(
  limit: number,
  {
    most,
    from,
    fetchPage,
  }: { most: number; from?: string; fetchPage: (limit: number, cursor?: string) => Promise<ItemPage<T>> },
): Promise<{ items: T[]; next: string | null }> {
  const items: T[] = [];
  let next: string | null = from ?? null;
  do {
    const page: ItemPage<T> = await fetchPage(Math.min(most, limit - items.length), next ?? undefined);
    items.push(...page.items);
    next = page.next;
  } while (next !== null && items.length < limit);
  return { items, next };
}

/** Reads a stream to its end, as text. */
export async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const part of stream) chunks.push(part);
  return Buffer.concat(chunks).toString('utf8');
}

/** Checks a time from the command line; the daemon evaluates it by its own clock. */
export function timeArg(text: string): string {
  if (parseTime(text) === null) throw new InvalidArgumentError(`expected ${TIME_EXPECTED}`);
  return text;
}
