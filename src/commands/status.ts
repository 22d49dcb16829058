import { Command, InvalidArgumentError, Option } from 'commander';
import type { JsonObject } from '../domain/json.ts';
import { chainName } from '../domain/transfers/chains.ts';
import { describeAmount } from '../domain/transfers/money.ts';
import { readTransfer } from '../domain/transfers/transfer.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import type { StatusPage, StatusQuery, StatusRecord } from '../upstream/wire/status-page.ts';
import { type ConnectionOptions, retry, upstreamOf, withClient, withConnection } from './connection.ts';
import { table, utcTime } from './table.ts';

/** Ways to name a subject; exactly one is given. */
const FILTERS = ['intent', 'tx', 'quote', 'job', 'wallet'] as const;

type Filters = Partial<Record<(typeof FILTERS)[number], string>>;

type Paging = { status?: string; limit?: number; cursor?: string };

type StatusOptions = ConnectionOptions & Filters & Paging & { json?: true };

/** `status`: prints the upstream's answer about one subject, or a page of a wallet's transfers. */
export function statusCommand(): Command {
  const command = new Command('status')
    .description('Print the response of the upstream about an intent, transaction, quote, job or wallet.')
    .option('--intent <hash>', 'intent hash')
    .option('--tx <hash>', 'transaction hash, of the source or the destination chain')
    .option('--quote <uuid>', 'quote id, with or without quote:')
    .option('--job <uuid>', 'gasless job id, with or without gasless:')
    .option('--wallet <address>', 'a page of the transfers of a wallet')
    .addOption(new Option('--status <word>', 'with --wallet: only transfers of this status'))
    .option('--limit <number>', 'with --wallet: how many, 1 to 50 (default: 20)', pageSize)
    .option('--cursor <cursor>', 'with --wallet: the next page, as the page before named it')
    .option('--json', 'print JSON, with the whole response');
  return withConnection(command).action(status);
}

function pageSize(text: string): number {
  if (!/^([1-9]|[1-4]\d|50)$/.test(text)) throw new InvalidArgumentError('expected a number from 1 to 50');
  return Number(text);
}

async function status(options: StatusOptions): Promise<void> {
  const queries = queriesOf(options);
  const page = await withClient(await upstreamOf(options, process.env), (client) =>
    fetchStatus(client, queries),
  );
  process.stdout.write(options.json ? renderJson(page) : renderTable(page));
}

/** Queries in order, until the upstream knows one. */
function queriesOf(options: StatusOptions): StatusQuery[] {
  const given = FILTERS.filter((name) => options[name] !== undefined);
  if (given.length !== 1) {
    const found = given.length === 0 ? 'none' : given.map((name) => `--${name}`).join(' and ');
    throw new Error(`found ${found}, expected one of --intent, --tx, --quote, --job and --wallet`);
  }
  const { intent, tx, quote, job, wallet, status: word, limit, cursor } = options;
  if (wallet !== undefined) {
    return [
      {
        wallet,
        ...(word === undefined ? {} : { status: word }),
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      },
    ];
  }
  if ([word, limit, cursor].some((value) => value !== undefined)) {
    throw new Error('found --status, --limit or --cursor without --wallet, expected them only with it');
  }
  if (intent !== undefined) return [{ intentHash: intent.replace(/^intent:/, '') }];
  if (quote !== undefined) return [{ quoteId: quote.replace(/^quote:/, '') }];
  if (job !== undefined) return [{ jobId: job.replace(/^gasless:/, '') }];
  return tx === undefined ? [] : [{ sourceTxHash: tx }, { destinationTxHash: tx }];
}

async function fetchStatus(client: UpstreamClient, queries: StatusQuery[]): Promise<StatusPage> {
  let page: StatusPage = { records: [], digests: null, unreadable: [], nextCursor: null };
  for (const query of queries) {
    page = (await retry(() => client.status(query))).value;
    if (page.records.some((record) => record.status !== 'unknown')) break;
  }
  return page;
}

function renderJson({ records, nextCursor }: StatusPage): string {
  return `${JSON.stringify({ results: records.map(({ raw }) => raw), nextCursor }, null, 2)}\n`;
}

function renderTable({ records, unreadable, nextCursor }: StatusPage): string {
  const rows = records.map((record) => [
    record.id,
    record.status,
    record.updatedAt === null ? '' : utcTime(record.updatedAt),
    describeTransfer(record.raw),
  ]);
  const lines =
    records.length === 0 ? ['no transfers'] : [table([['ID', 'STATUS', 'UPDATED', 'TRANSFER'], ...rows])];
  for (const name of intentsBeyond(records)) lines.push(`  leads to intent ${name}`);
  for (const { index, reason } of unreadable) lines.push(`result ${index} cannot be read: ${reason}`);
  if (nextCursor !== null) lines.push(`more: --cursor ${shellQuoted(nextCursor)}`);
  return `${lines.join('\n')}\n`;
}

/** The upstream answers a quote or a job alone, and names the intents that it became. */
function intentsBeyond(records: readonly StatusRecord[]): string[] {
  const [record] = records;
  if (record === undefined || records.length > 1 || record.type === 'intent') return [];
  return record.intentHashes.map((hash) => table([[hash]]));
}

function describeTransfer(record: JsonObject): string {
  const { source, destination } = readTransfer(record);
  const { amount, token, chainId } = source ?? destination ?? { amount: null, token: null, chainId: null };
  const what = amount === null ? '' : describeAmount({ amount, token, chainId });
  const ends = [source, destination].map((leg) => (leg?.chainId ? chainName(leg.chainId) : null));
  const route = ends.filter((end) => end !== null).join(' to ');
  return [what, route].filter((part) => part !== '').join(', ');
}

/** The cursor comes from outside and is meant to be pasted into a shell. */
function shellQuoted(cursor: string): string {
  return `'${table([[cursor.replaceAll("'", `'\\''`)]])}'`;
}
