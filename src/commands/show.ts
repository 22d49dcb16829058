import { Command } from 'commander';
import type { ApiClient } from '../client/api-client.ts';
import { printableLine } from '../notifiers/printable.ts';
import type { SubjectDelivery } from '../operations/subject-deliveries.ts';
import type { TimelineEntry } from '../operations/timeline.ts';
import {
  listDeliveriesOfSubject,
  MOST_DELIVERIES,
  MOST_EVENTS,
  readSubject,
} from '../server/api/routes/subjects.ts';
import type { SubjectDetails } from '../server/api/shapes.ts';
import { clientOf, count, type DaemonOptions, pagesOf, print, remark, withDaemon } from './daemon.ts';
import { findSubject } from './find-subject.ts';
import { nextAttempt, type Screen, screenOf, tinted, utcTimeOfIso } from './table.ts';

/** `show`: prints the timeline of one subject. */
export function showCommand(): Command {
  return withDaemon(
    new Command('show')
      .description(
        'Print what happened to one subject: statuses, events, deliveries, attempts, what is next.',
      )
      .argument('<id>', 'its id, an intent or transaction hash, an address, a UUID, or metadata as key=value')
      .option('--limit <number>', 'how many of its events, the newest', count, MOST_EVENTS),
  ).action(async (id: string, options: DaemonOptions & { limit: number }) => {
    const client = await clientOf(options);
    const shown = await readShown(client, await findSubject(client, id), options.limit);
    print(options, { raw: shown, text: () => shownText(shown, screenOf()) });
    if (shown.next !== null && options.json !== true)
      remark(`there are older events: --limit ${options.limit * 2}`);
  });
}

/** A subject with a page of its newest events and all their deliveries. `next` is for its timeline. */
type Shown = SubjectDetails & { deliveries: SubjectDelivery[] };

async function readShown(client: ApiClient, subject: string, limit: number): Promise<Shown> {
  const params = { subject };
  const pages: SubjectDetails[] = [];
  const { items: timeline, next } = await pagesOf(limit, {
    most: MOST_EVENTS,
    fetchPage: async (most, after) => {
      const { body } = await client.call(readSubject, { params, query: { limit: most, after } });
      pages.push(body);
      return { items: body.timeline, next: body.next };
    },
  });
  const { items: deliveries } = await pagesOf(Number.POSITIVE_INFINITY, {
    most: MOST_DELIVERIES,
    fetchPage: async (most, after) => {
      const query = { limit: most, after, until: next ?? undefined };
      const { body } = await client.call(listDeliveriesOfSubject, { params, query });
      return { items: body.deliveries, next: body.next };
    },
  });
  const [first] = pages;
  if (first === undefined) throw new Error(`found no page of ${subject}, expected one`);
  return { ...first, timeline, next, deliveries };
}

function shownText(details: Shown, screen: Screen): string {
  const { subject, status, related, metadata, subscriptions, polledAt, pendingSince } = details;
  const isWatched = details.kind === 'wallet' && details.underWay;
  const none = isWatched
    ? `its events are those of its transfers: intentwatch ls --wallet ${subject.slice('wallet:'.length)}`
    : 'no event yet, or none is still in the log';
  const facts: [string, string][] = [
    ['status', `${status ?? (isWatched ? 'watched' : 'nothing seen yet')}, ${nowOf(details)}`],
    ['waits since', details.underWay ? utcTimeOfIso(pendingSince) : ''],
    ['transfer', transferLine(details)],
    ['transactions', transactionsLine(details)],
    ...details.checks.map((check): [string, string] => [`${check.payment} check`, checkLine(check)]),
    [
      'metadata',
      Object.entries(metadata)
        .map(([key, value]) => `${key}=${value}`)
        .join(' '),
    ],
    ['subscriptions', subscriptions.join(' ')],
    ['came from', related.join(' ')],
    ['last seen', utcTimeOfIso(polledAt)],
  ];
  const shown = facts.filter(([, value]) => value !== '');
  const width = Math.max(...shown.map(([name]) => name.length));
  const deliveries = Map.groupBy(details.deliveries, ({ event }) => event);
  const events = details.timeline
    .toReversed()
    .flatMap((entry) =>
      entryLines(entry, { deliveries: deliveries.get(entry.event) ?? [], own: subject, screen }),
    );
  return [
    screen.colour('bold', line(subject)),
    ...shown.map(
      ([name, value]) => `  ${screen.colour('dim', name.padEnd(width))}  ${tinted(line(value), screen)}`,
    ),
    '',
    ...(events.length === 0 ? [none] : events),
  ].join('\n');
}

/** `disputed on Base: short, moved 9.9 USDC to 0x…; own found, other found`, or the reason for its delay. */
function checkLine({
  state,
  because,
  chain,
  moved,
  responses,
  polls,
}: SubjectDetails['checks'][number]): string {
  const states = responses.map(({ endpoint, outcome, reason }) =>
    reason === undefined ? `${endpoint} ${outcome}` : `${endpoint} ${outcome} (${reason})`,
  );
  const why = because === null ? '' : `: ${because}`;
  const times = state === 'waiting' ? `, polled ${polls} ${polls === 1 ? 'time' : 'times'}` : '';
  const moves = moved.map((move) => `, ${moneyText('moved', move)} to ${move.to}`).join('');
  return `${state} on ${chain}${why}${times}${moves}${states.length === 0 ? '' : `; ${states.join(', ')}`}`;
}

function nowOf({ underWay, overdue }: SubjectDetails): string {
  if (!underWay) return 'not polled any more';
  return overdue ? 'under way, reported as overdue' : 'under way';
}

function transferLine({ transfer }: SubjectDetails): string {
  if (transfer === null) return '';
  const { sent, toSend, promised, delivered, source, destination } = transfer;
  const amounts = [
    moneyText('sent', sent) ?? moneyText('to send', toSend),
    moneyText('promised', promised),
    moneyText('delivered', delivered),
  ].filter((text) => text !== null);
  const ends = [source, destination].flatMap((end) => end?.chain ?? end?.chainId ?? []);
  return [...amounts, ends.join(' to ')].filter((text) => text !== '').join(', ');
}

function moneyText(
  word: string,
  money: { amount?: string; units?: string | null; symbol?: string | null } | undefined,
): string | null {
  const amount = money?.units ?? money?.amount;
  return amount === undefined ? null : `${word} ${amount}${money?.symbol == null ? '' : ` ${money.symbol}`}`;
}

function transactionsLine({ transfer }: SubjectDetails): string {
  const ends = [transfer?.source, transfer?.destination, transfer?.refund];
  return ends.flatMap((end) => end?.txUrl ?? end?.txHash ?? []).join(' ');
}

function entryLines(
  entry: TimelineEntry,
  { deliveries, own, screen }: { deliveries: readonly SubjectDelivery[]; own: string; screen: Screen },
): string[] {
  const { at, subject, type, sequence, status, changes, event } = entry;
  const about = subject === own ? `#${sequence}` : `#${sequence} of ${subject}`;
  const what =
    changes.includes('status') || changes.length === 0 ? (status ?? '') : `changed: ${changes.join(', ')}`;
  const head = [
    screen.colour('dim', utcTimeOfIso(at)),
    screen.colour('bold', line(type)),
    about,
    tinted(line(what), screen),
  ];
  const width = Math.max(0, ...deliveries.map(({ receiver }) => receiver.length));
  return [
    `${head.join('  ')}  ${screen.colour('dim', line(event))}`,
    ...deliveries.flatMap((delivery) => deliveryLines(delivery, { width, screen })),
  ];
}

function deliveryLines(
  delivery: SubjectDelivery,
  { width, screen }: { width: number; screen: Screen },
): string[] {
  const { receiver, state, attempts, lastAttempts, nextAttemptAt, waitsFor, replay } = delivery;
  const remarks = [
    tinted(state, screen),
    `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`,
    ...(nextAttemptAt === null ? [] : [nextAttempt(nextAttemptAt, 'next ')]),
    ...(waitsFor === null ? [] : [`waits for ${waitsFor}`]),
    ...(replay === null ? [] : [`replay ${replay}`]),
  ];
  return [
    `    ${line(receiver).padEnd(width)}  ${remarks.join(', ')}`,
    ...lastAttempts.map(({ at, durationMs, reason, answer }) => {
      const detail = answer === '' || answer === reason ? '' : `: ${answer}`;
      return `    ${' '.repeat(width)}    ${screen.colour('dim', utcTimeOfIso(at))}  ${line(`${reason}${detail}`)} (${durationMs} ms)`;
    }),
  ];
}

/** One line, made printable, as its content comes from outside. */
function line(text: string): string {
  return printableLine(text, 300);
}
