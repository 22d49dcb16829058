import { Command } from 'commander';
import type { Dropped, Suspended } from '../operations/suspended.ts';
import { listOfDropped, listOfSuspended, removeOfSuspended } from '../server/api/routes/suspended.ts';
import { clientOf, count, type DaemonOptions, pagesOf, print, remark, withDaemon } from './daemon.ts';
import { screenOf, table, utcTimeOfIso } from './table.ts';

type SuspendedOptions = DaemonOptions & { dropped?: true; limit: number };

/** `suspended`: lists suspended subjects and receivers, or events that were dropped. */
export function suspendedCommand(): Command {
  return withDaemon(
    new Command('suspended')
      .description('List what left the config and may come back, with the events that wait for it.')
      .option('--dropped', 'the events that waited in vain, what was dropped last first')
      .option('--limit <number>', 'how many', count, 100),
  ).action(async (options: SuspendedOptions) => {
    const { limit, dropped } = options;
    const client = await clientOf(options);
    const page = { most: 200 };
    const next =
      dropped === true
        ? await pagesOf(limit, {
            ...page,
            fetchPage: async (most, cursor) => {
              const { body } = await client.call(listOfDropped, { query: { limit: most, cursor } });
              return { items: body.dropped, next: body.next };
            },
          }).then((found) => {
            print(options, {
              raw: { dropped: found.items, next: found.next },
              text: () => droppedTable(found.items),
            });
            return found.next;
          })
        : await pagesOf(limit, {
            ...page,
            fetchPage: async (most, cursor) => {
              const { body } = await client.call(listOfSuspended, { query: { limit: most, cursor } });
              return { items: body.suspended, next: body.next };
            },
          }).then((found) => {
            print(options, {
              raw: { suspended: found.items, next: found.next },
              text: () => suspendedTable(found.items),
            });
            return found.next;
          });
    if (next !== null && options.json !== true) remark(`there may be more: --limit ${limit * 2}`);
  });
}

function suspendedTable(items: readonly Suspended[]): string {
  if (items.length === 0) return 'nothing is suspended';
  const rows = items.map(({ subject, subscription, state, since, until, events }) => [
    subject,
    subscription,
    state,
    utcTimeOfIso(since),
    utcTimeOfIso(until),
    String(events),
  ]);
  return table([['SUBJECT', 'SUBSCRIPTION', 'STATE', 'SINCE', 'UNTIL', 'EVENTS'], ...rows], screenOf());
}

function droppedTable(items: readonly Dropped[]): string {
  if (items.length === 0) return 'no event waited in vain';
  const rows = items.map(({ event, type, subject, subscription, named, droppedAt }) => [
    event,
    type ?? 'has left the log',
    subject ?? '',
    subscription,
    named,
    utcTimeOfIso(droppedAt),
  ]);
  return table([['EVENT', 'TYPE', 'SUBJECT', 'SUBSCRIPTION', 'NAMED', 'DROPPED'], ...rows], screenOf());
}

/** `remove`: removes what is suspended at once. */
export function removeCommand(): Command {
  return withDaemon(
    new Command('remove')
      .description(
        'Remove what left the config at once: it is polled no more, and the events that wait for it are dropped.',
      )
      .argument('<id>', 'the id of a subject, an address or hash, or the name of a subscription'),
  ).action(async (id: string, options: DaemonOptions) => {
    const client = await clientOf(options);
    const { body, raw } = await client.call(removeOfSuspended, { body: { id } });
    const { subjects, events } = body;
    print(options, { raw, text: () => `subjects removed: ${subjects}, events dropped: ${events}` });
  });
}
