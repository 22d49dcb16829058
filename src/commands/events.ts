import { Command, Option } from 'commander';
import { followDaemon } from '../client/follow.ts';
import type { RenderedEvent } from '../domain/events/event.ts';
import { interrupted } from '../exit.ts';
import { makeNotice } from '../notifiers/notice/notice.ts';
import { printableLine } from '../notifiers/printable.ts';
import { listEvents } from '../server/api/routes/log.ts';
import {
  clientOf,
  count,
  type DaemonOptions,
  pagesOf,
  print,
  remark,
  timeArg,
  withDaemon,
  writeLine,
} from './daemon.ts';
import { subjectOption } from './find-subject.ts';
import { screenOf, tinted, utcTimeOfIso } from './table.ts';

type EventsOptions = DaemonOptions & {
  type?: string[];
  subject?: string;
  since?: string;
  until?: string;
  limit?: number;
  follow?: true;
};

const MOST = 100;

/** `events`: prints past events, and new ones as they occur. */
export function eventsCommand(): Command {
  return withDaemon(
    new Command('events')
      .description('Print the newest events, or each as it is made.')
      .option('--follow', 'print each event as it is made, until Ctrl-C; with --json a line each')
      .option('--type <glob...>', 'of these types, with * and a leading !')
      .option('--subject <id>', 'about this subject: its id, a hash, or metadata as key=value')
      .option('--since <time>', 'from then on: a time like 2026-11-20T10:00:00Z, or a span like 2h', timeArg)
      .addOption(
        new Option('--until <time>', 'up to then, in the same way').argParser(timeArg).conflicts('follow'),
      )
      .addOption(
        new Option('--limit <number>', `how many, the newest ones (default: ${MOST})`)
          .argParser(count)
          .conflicts('follow'),
      ),
  ).action(async (options: EventsOptions) => (options.follow === true ? follow(options) : list(options)));
}

async function list(options: EventsOptions): Promise<void> {
  const { type, since, until, limit = MOST } = options;
  const client = await clientOf(options);
  const subject = await subjectOption(client, options.subject);
  const { items, next } = await pagesOf(limit, {
    most: 500,
    fetchPage: async (most, after) => {
      const { body } = await client.call(listEvents, {
        query: { type, subject, since, until, order: 'newest', limit: most, after },
      });
      return { items: body.events, next: body.next };
    },
  });
  const events = items.toReversed();
  print(options, {
    raw: { events },
    text: () => (events.length === 0 ? 'no events' : events.map(eventText).join('\n')),
  });
  if (next !== null && options.json !== true) remark(`there may be earlier ones: --limit ${limit * 2}`);
}

async function follow(options: EventsOptions): Promise<void> {
  const client = await clientOf(options);
  const stop = new AbortController();
  const signals = interrupted();
  void signals.wait.then(() => stop.abort());
  const { type, since } = options;
  const wanted = { type, since, subject: await subjectOption(client, options.subject) };
  const followed = followDaemon(client, wanted, { signal: stop.signal, ...connectionRemarks(client.url) });
  for await (const { event, raw } of followed)
    writeLine(options.json === true ? JSON.stringify(raw) : eventText(event));
  signals.release();
}

/** Reports on stderr when a followed connection is cut, and when it is restored. */
export function connectionRemarks(url: string): { onCut: (reason: string) => void; onBack: () => void } {
  return {
    onCut: (reason) => remark(`${url}: ${reason}; trying again until it answers`),
    onBack: () => remark(`${url}: connected again; nothing was missed`),
  };
}

/** An event as one line. */
export function eventText(event: RenderedEvent): string {
  const { type, timestamp, data } = event;
  const screen = screenOf();
  const { title } = makeNotice(event);
  const line = (text: string): string => printableLine(text, 200);
  return [
    screen.colour('dim', utcTimeOfIso(timestamp)),
    screen.colour('bold', line(type)),
    line(data.subject.id),
    `#${data.sequence}`,
    tinted(line(data.status ?? ''), screen),
    line(title),
    screen.colour('dim', line(event.id)),
  ]
    .filter((text) => text !== '')
    .join('  ');
}
