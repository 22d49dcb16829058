import { Command, Option } from 'commander';
import { isJsonObject } from '../domain/json.ts';
import { PROOF_OUTCOMES } from '../domain/proof/proof-flags.ts';
import type { Subject } from '../operations/subjects.ts';
import { TRACKED_KINDS } from '../operations/tracking.ts';
import { listWatched, recheckSubject } from '../server/api/routes/subjects.ts';
import { track, untrack } from '../server/api/routes/tracking.ts';
import { clientOf, count, type DaemonOptions, pagesOf, pair, print, remark, withDaemon } from './daemon.ts';
import { findSubject } from './find-subject.ts';
import { screenOf, table, utcTimeOfIso } from './table.ts';

type TrackOptions = DaemonOptions & {
  to?: string[];
  metadata?: string[];
  overdueAfter?: string;
  endpoint?: 'status' | 'gateway';
  chain?: number;
  quote?: string;
  watchVault?: true;
};

/** `track`: adds a subject to a running daemon beside those of its config. */
export function trackCommand(): Command {
  return withDaemon(
    new Command('track')
      .description('Watch a transfer, wallet, quote, job or vault from now on, beside what the config names.')
      .argument('[kind]', `what the id is of: ${TRACKED_KINDS.join(', ')}`)
      .argument('[id]', 'its address, hash or UUID')
      .option(
        '--to <receiver...>',
        'which receivers are notified; left out only where there are no receivers',
      )
      .option('--metadata <key=value>', 'what every event of it carries for you (repeatable)', pair)
      .option('--overdue-after <span>', 'reported as overdue after this: a duration, or "learned"')
      .option('--chain <id>', 'of a vault: the chain on which it is funded', count)
      .addOption(
        new Option('--endpoint <name>', 'of a gasless job: who knows it').choices(['status', 'gateway']),
      )
      .option('--quote <file>', 'a whole quote as JSON in the place of kind and id; - reads stdin')
      .option('--watch-vault', 'of a whole quote: watch its vault at the deposit gateway too'),
  ).action(async (kind: string | undefined, id: string | undefined, options: TrackOptions) => {
    const { to, metadata = [], overdueAfter, endpoint, chain, quote, watchVault } = options;
    const tracked = TRACKED_KINDS.find((one) => one === kind);
    if (quote === undefined ? tracked === undefined || id === undefined : kind !== undefined) {
      throw new Error(
        `found ${quote === undefined ? 'no kind and id' : 'a kind and --quote'}, expected a kind (${TRACKED_KINDS.join(', ')}) and an id, or --quote FILE`,
      );
    }
    const client = await clientOf(options);
    const { body, raw } = await client.call(track, {
      body: {
        ...(quote === undefined ? { kind: tracked, id } : { quote: await readQuote(quote) }),
        endpoint,
        chainId: chain,
        watchVault,
        metadata: Object.fromEntries(metadata.map(keyAndValue)),
        receivers: to,
        overdueAfter,
      },
    });
    print(options, {
      raw,
      text: () =>
        `${body.subject} is tracked${body.created ? '' : ' already; it has this metadata and these receivers now'}`,
    });
  });
}

async function readQuote(file: string) {
  const { readQuoteFile } = await import('./verify-quote.ts');
  const value = await readQuoteFile(file);
  if (isJsonObject(value)) return value;
  throw new Error(`${file}: found JSON that is no object, expected a quote as POST /v1/quotes answered it`);
}

function keyAndValue(text: string): [string, string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}

/** `untrack`: ends the tracking of a subject. */
export function untrackCommand(): Command {
  return withDaemon(
    new Command('untrack')
      .description(
        'End the tracking of a subject: nothing more is reported of it, unless the config names it too.',
      )
      .argument('<id>', 'its id, a hash, or metadata as key=value'),
  ).action(async (id: string, options: DaemonOptions) => {
    const client = await clientOf(options);
    const subject = await findSubject(client, id);
    const { raw } = await client.call(untrack, { params: { subject } });
    print(options, { raw, text: () => `${subject} is not tracked any more` });
  });
}

/** `recheck`: polls a subject now. */
export function recheckCommand(): Command {
  return withDaemon(
    new Command('recheck')
      .description('Poll a subject now, as soon as the budget allows.')
      .argument('<id>', 'its id, a hash, or metadata as key=value'),
  ).action(async (id: string, options: DaemonOptions) => {
    const client = await clientOf(options);
    const subject = await findSubject(client, id);
    const { raw } = await client.call(recheckSubject, { params: { subject } });
    print(options, { raw, text: () => `${subject} is polled next` });
  });
}

type ListOptions = DaemonOptions & {
  kind?: string[];
  status?: string[];
  wallet?: string;
  subscription?: string;
  metadata?: string[];
  mentions?: string;
  underWay?: true;
  ended?: true;
  overdue?: true;
  proof?: (typeof PROOF_OUTCOMES)[number];
  age?: string;
  limit: number;
  cursor?: string;
};

/** `ls`: lists watched subjects. */
export function listCommand(): Command {
  return withDaemon(
    new Command('ls')
      .description('List what is watched, what changed last first.')
      .option('--kind <kind...>', 'of these kinds, such as intent')
      .option('--status <status...>', 'in one of these statuses')
      .option('--wallet <address>', 'of this watched wallet')
      .option('--subscription <name>', 'to which this subscription leads')
      .option('--metadata <key=value>', 'with this metadata (repeatable: all must hold)', pair)
      .option(
        '--mentions <text>',
        'with this hash or address in the record or id, or shown by pages of this wallet',
      )
      .option('--under-way', 'only what is polled')
      .addOption(new Option('--ended', 'only what is not polled any more').conflicts('underWay'))
      .option('--overdue', 'only what was reported as overdue, and still waits')
      .addOption(
        new Option('--proof <result>', 'with this result of the check of a payment on its chain').choices(
          PROOF_OUTCOMES,
        ),
      )
      .option('--age <span>', 'has waited for at least so long, such as 10m')
      .option('--limit <number>', 'how many', count, 50)
      .option('--cursor <cursor>', 'goes on where a list before ended'),
  ).action(async (options: ListOptions) => {
    const { json: _, url: _url, config: _config, limit, cursor, underWay, ended, overdue, ...rest } = options;
    const client = await clientOf(options);
    const { kind, status, wallet, subscription, metadata, mentions, proof, age } = rest;
    const filter = {
      ...{ kind, status, wallet, subscription, metadata, mentions, proof, age },
      underWay: underWay === true ? ('true' as const) : ended === true ? ('false' as const) : undefined,
      overdue: overdue === true ? ('true' as const) : undefined,
    };
    const { items, next } = await pagesOf(limit, {
      most: 200,
      ...(cursor === undefined ? {} : { from: cursor }),
      fetchPage: async (most, from) => {
        const { body } = await client.call(listWatched, { query: { ...filter, limit: most, cursor: from } });
        return { items: body.subjects, next: body.next };
      },
    });
    print(options, { raw: { subjects: items, next }, text: () => subjectTable(items) });
    if (next !== null && options.json !== true) remark(`there may be more: --limit ${limit * 2}`);
  });
}

export function subjectTable(subjects: readonly Subject[]): string {
  if (subjects.length === 0) return 'nothing that is watched fits';
  const rows = subjects.map(
    ({ subject, kind, status, underWay, overdue, proof, changedAt, subscriptions, metadata }) => [
      subject,
      status ?? (kind === 'wallet' ? '' : 'nothing seen yet'),
      overdue ? 'overdue' : underWay ? 'under way' : 'ended',
      proof ?? '',
      utcTimeOfIso(changedAt),
      subscriptions.join(' '),
      Object.entries(metadata)
        .map(([key, value]) => `${key}=${value}`)
        .join(' '),
    ],
  );
  return table(
    [['SUBJECT', 'STATUS', 'NOW', 'PROOF', 'CHANGED', 'SUBSCRIPTIONS', 'METADATA'], ...rows],
    screenOf(),
  );
}
