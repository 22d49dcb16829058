import { Command, Option } from 'commander';
import type { ApiClient } from '../client/api-client.ts';
import type { Undelivered, Unmatched } from '../operations/undelivered.ts';
import { retryOfReceiver } from '../server/api/routes/receivers.ts';
import { listOfUndelivered, listOfUnmatched } from '../server/api/routes/undelivered.ts';
import {
  clientOf,
  count,
  type DaemonOptions,
  pagesOf,
  print,
  remark,
  timeArg,
  withDaemon,
} from './daemon.ts';
import { subjectOption } from './find-subject.ts';
import { nextAttempt, screenOf, table, utcTimeOfIso } from './table.ts';

type UndeliveredOptions = DaemonOptions & {
  state?: 'retrying' | 'dead';
  type?: string[];
  subject?: string;
  attempts?: true;
  limit: number;
  cursor?: string;
};

/** `undelivered`: lists events that receivers have not accepted. */
export function undeliveredCommand(): Command {
  return withDaemon(
    new Command('undelivered')
      .description(
        'List deliveries that failed: those that are tried again, and those that were given up; and events that no receiver gets.',
      )
      .argument('[receivers...]', 'only to these')
      .addOption(new Option('--state <state>', 'only these').choices(['retrying', 'dead']))
      .option('--type <glob...>', 'of these types, with * and a leading !')
      .option('--subject <id>', 'about this subject: its id, a hash, or metadata as key=value')
      .option('--attempts', 'show what each of the last attempts was answered')
      .option('--limit <number>', 'how many', count, 100)
      .option('--cursor <cursor>', 'goes on where a list before ended'),
  ).action(async (receivers: string[], options: UndeliveredOptions) => {
    const { state, type, attempts, limit, cursor } = options;
    const client = await clientOf(options);
    const subject = await subjectOption(client, options.subject);
    const { items, next } = await pagesOf(limit, {
      most: 200,
      ...(cursor === undefined ? {} : { from: cursor }),
      fetchPage: async (most, from) => {
        const { body } = await client.call(listOfUndelivered, {
          query: { receiver: receivers, state, type, subject, limit: most, cursor: from },
        });
        return { items: body.undelivered, next: body.next };
      },
    });
    // A request for one receiver or state does not include events that no receiver gets.
    const isWhole =
      receivers.length === 0 && [state, type, subject, cursor].every((one) => one === undefined);
    const { items: unmatched, next: nextUnmatched } = isWhole
      ? await unmatchedOf(client, limit)
      : { items: [], next: null };
    print(options, {
      raw: { undelivered: items, next, unmatched, nextUnmatched },
      text: () => {
        if (items.length + unmatched.length === 0) return 'nothing is undelivered';
        const failed = items.length === 0 ? [] : [undeliveredTable(items, attempts === true)];
        const nobodys = unmatched.length === 0 ? [] : [unmatchedTable(unmatched)];
        return [...failed, ...nobodys].join('\n\n');
      },
    });
    if (nextUnmatched !== null && options.json !== true)
      remark(`there may be more that no receiver gets: --limit ${limit * 2}`);
    if (next !== null && options.json !== true) remark(`there may be more: --limit ${limit * 2}`);
  });
}

async function unmatchedOf(
  client: ApiClient,
  limit: number,
): Promise<{ items: Unmatched[]; next: string | null }> {
  return pagesOf(limit, {
    most: 200,
    fetchPage: async (most, from) => {
      const { body } = await client.call(listOfUnmatched, { query: { limit: most, cursor: from } });
      return { items: body.unmatched, next: body.next };
    },
  });
}

function unmatchedTable(items: readonly Unmatched[]): string {
  const rows = items.map(({ event, type, subject, at, reason, subscriptions }) => [
    reason,
    event,
    type,
    subject,
    utcTimeOfIso(at),
    subscriptions.join(', '),
  ]);
  const head = ['NO RECEIVER GETS', 'EVENT', 'TYPE', 'SUBJECT', 'AT', 'SUBSCRIPTIONS'];
  return table([head, ...rows], screenOf());
}

function undeliveredTable(items: readonly Undelivered[], withAttempts: boolean): string {
  const rows = withAttempts
    ? [ATTEMPTS, ...items.flatMap(attemptRows)]
    : [['RECEIVER', 'STATE', 'EVENT', 'TYPE', 'SUBJECT', 'ATTEMPTS', 'NEXT', 'REASON'], ...items.map(row)];
  return table(rows, screenOf());
}

const ATTEMPTS = ['RECEIVER', 'EVENT', 'TYPE', 'AT', 'TOOK', 'REASON', 'ANSWER'];

function row({
  receiver,
  state,
  event,
  replay,
  type,
  subject,
  attempts,
  nextAttemptAt,
  lastAttempts,
}: Undelivered): string[] {
  return [
    receiver,
    state,
    `${event}${replay === null ? '' : ` (replay ${replay})`}`,
    type ?? 'has left the log',
    subject ?? '',
    String(attempts),
    nextAttempt(nextAttemptAt),
    lastAttempts.at(-1)?.reason ?? '',
  ];
}

function attemptRows({ receiver, event, type, lastAttempts }: Undelivered): string[][] {
  return lastAttempts.map(({ at, durationMs, reason, answer }) => [
    receiver,
    event,
    type ?? 'has left the log',
    utcTimeOfIso(at),
    `${durationMs} ms`,
    reason,
    answer,
  ]);
}

type RetryOptions = DaemonOptions & {
  all?: true;
  since?: string;
  until?: string;
  type?: string[];
  status?: string[];
};

/** `retry`: delivers dead letters again. */
export function retryCommand(): Command {
  return withDaemon(
    new Command('retry')
      .description(
        'Deliver again what was given up for a receiver, oldest first, with all attempts before it.',
      )
      .argument('<receiver>', 'whose dead letters')
      .argument('[events...]', 'the ids of their events')
      .option('--all', 'all of the receiver')
      .option(
        '--since <time>',
        'of events from then on: a time like 2026-11-20T10:00:00Z, or a span like 2h',
        timeArg,
      )
      .option('--until <time>', 'of events up to then, in the same way', timeArg)
      .option('--type <glob...>', 'of these types, with * and a leading !')
      .option('--status <code...>', 'whose last answer was one of these: an HTTP or SMTP code, or "none"'),
  ).action(async (receiver: string, events: string[], options: RetryOptions) => {
    const { all, since, until, type: types, status: statuses } = options;
    const isFiltered = [since, until, types, statuses].some((one) => one !== undefined);
    const ways = [events.length > 0, all === true, isFiltered].filter(Boolean).length;
    if (ways !== 1) {
      throw new Error(`found ${ways === 0 ? 'none' : 'several'} of events, --all and filters, expected one`);
    }
    const client = await clientOf(options);
    const { body, raw } = await client.call(retryOfReceiver, {
      params: { name: receiver },
      body: { events: events.length === 0 ? undefined : events, since, until, types, statuses },
    });
    const { renewed, deadLetters, gone } = body;
    const left = gone > 0 ? `; ${gone} are of events that have left the log` : '';
    print(options, {
      raw,
      text: () => `${renewed} of ${deadLetters} dead letters of ${receiver} are queued again${left}`,
    });
  });
}
