import { Command } from 'commander';
import { printableLine } from '../notifiers/printable.ts';
import type { Delivery } from '../operations/deliveries.ts';
import type { SubjectDetails } from '../operations/timeline.ts';
import { readSubject } from '../server/api/routes/subjects.ts';
import { clientOf, type DaemonOptions, print, withDaemon } from './daemon.ts';
import { findSubject } from './find-subject.ts';
import { type Screen, screenOf, tinted, utcTimeOfIso } from './table.ts';

/** `show`: prints what happened to one subject. */
export function showCommand(): Command {
  return withDaemon(
    new Command('show')
      .description(
        'Print what happened to one subject: statuses, events, deliveries, attempts, what is next.',
      )
      .argument(
        '<id>',
        'its id, an intent or transaction hash, an address, a UUID, or metadata as key=value',
      ),
  ).action(async (id: string, options: DaemonOptions) => {
    const client = await clientOf(options);
    const subject = await findSubject(client, id);
    const { body, raw } = await client.ask(readSubject, { params: { subject } });
    print(options, { raw, text: () => detailsText(body, screenOf()) });
  });
}

/** A subject with its timeline, as lines. */
function detailsText(details: SubjectDetails, screen: Screen): string {
  const { subject, status, related, timeline, metadata, subscriptions, lookedAt, pendingSince } = details;
  const facts: [string, string][] = [
    ['status', `${status ?? 'nothing seen yet'}, ${nowOf(details)}`],
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
    ['last seen', utcTimeOfIso(lookedAt)],
  ];
  const shown = facts.filter(([, value]) => value !== '');
  const width = Math.max(...shown.map(([name]) => name.length));
  const events = timeline.flatMap((moment) => momentLines(moment, { own: subject, screen }));
  return [
    screen.colour('bold', line(subject)),
    ...shown.map(
      ([name, value]) => `  ${screen.colour('dim', name.padEnd(width))}  ${tinted(line(value), screen)}`,
    ),
    '',
    ...(events.length === 0 ? ['no event yet, or none is still in the log'] : events),
  ].join('\n');
}

/** `verified on chain 8453 by own, other`, or why not yet. */
function checkLine({ state, because, chainId, readings, asked }: SubjectDetails['checks'][number]): string {
  const said = readings.map(({ endpoint, outcome, reason }) =>
    reason === undefined ? `${endpoint} ${outcome}` : `${endpoint} ${outcome} (${reason})`,
  );
  const why = because === null ? '' : `: ${because}`;
  const times = state === 'waiting' ? `, asked ${asked} ${asked === 1 ? 'time' : 'times'}` : '';
  return `${state} on chain ${chainId}${why}${times}${said.length === 0 ? '' : `; ${said.join(', ')}`}`;
}

function nowOf({ underWay, overdue }: SubjectDetails): string {
  if (!underWay) return 'not polled any more';
  return overdue ? 'under way, told as overdue' : 'under way';
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
  money: { amount?: string | undefined; units?: string | undefined; symbol?: string | undefined } | undefined,
): string | null {
  const amount = money?.units ?? money?.amount;
  return amount === undefined
    ? null
    : `${word} ${amount}${money?.symbol === undefined ? '' : ` ${money.symbol}`}`;
}

function transactionsLine({ transfer }: SubjectDetails): string {
  const ends = [transfer?.source, transfer?.destination, transfer?.refund];
  return ends.flatMap((end) => end?.txUrl ?? end?.txHash ?? []).join(' ');
}

type Moment = SubjectDetails['timeline'][number];

function momentLines(moment: Moment, { own, screen }: { own: string; screen: Screen }): string[] {
  const { at, subject, type, sequence, status, changes, deliveries, event } = moment;
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

function deliveryLines(delivery: Delivery, { width, screen }: { width: number; screen: Screen }): string[] {
  const { receiver, state, attempts, lastAttempts, nextAttemptAt, waitsFor, replay } = delivery;
  const remarks = [
    tinted(state, screen),
    `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`,
    ...(nextAttemptAt === null ? [] : [`next ${utcTimeOfIso(nextAttemptAt)}`]),
    ...(waitsFor === null ? [] : [`waits for ${waitsFor}`]),
    ...(replay === null ? [] : [`replay ${replay}`]),
  ];
  return [
    `    ${line(receiver).padEnd(width)}  ${remarks.join(', ')}`,
    ...lastAttempts.map(({ at, durationMs, reason, answer }) => {
      const said = answer === '' || answer === reason ? '' : `: ${answer}`;
      return `    ${' '.repeat(width)}    ${screen.colour('dim', utcTimeOfIso(at))}  ${line(`${reason}${said}`)} (${durationMs} ms)`;
    }),
  ];
}

/** One harmless line: what stands in it comes from outside. */
function line(text: string): string {
  return printableLine(text, 300);
}
