import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from 'commander';
import type { ApiClient } from '../client/api-client.ts';
import { EXIT, interrupted } from '../exit.ts';
import { resendToReceiver } from '../server/api/routes/receivers.ts';
import { readReplay, resendOfEvent, resendOfSubject } from '../server/api/routes/resend.ts';
import { clientOf, type DaemonOptions, remark, timeArg, withDaemon, writeLine } from './daemon.ts';
import { findSubject } from './find-subject.ts';

type ResendInput = DaemonOptions & {
  to?: string[];
  since?: string;
  until?: string;
  type?: string[];
  wait: boolean;
};

const CHECK_EVERY_MS = 500;

/** `resend`: sends events again, under their ids. */
export function resendCommand(): Command {
  return withDaemon(
    new Command('resend')
      .description('Send events once more, under their ids: one, all of a subject, or those of a time.')
      .argument('[id]', 'an event, or a subject by its id, a hash, or metadata as key=value')
      .option('--to <receiver...>', 'to these (default: to all that match; --since needs it)')
      .option(
        '--since <time>',
        'in the place of an id: from then on, a time like 2026-11-20T10:00:00Z or a span like 2h',
        timeArg,
      )
      .option('--until <time>', 'up to when, in the same way (default: the newest)', timeArg)
      .addOption(new Option('--type <glob...>', 'with --since: only these types, with * and a leading !'))
      .option('--no-wait', 'do not wait until all are delivered'),
  ).action(async (id: string | undefined, options: ResendInput) => {
    const client = await clientOf(options);
    const replays = await requestResends(client, id, options);
    if (options.wait) await watch(client, replays, options);
    else show(options, { replays });
  });
}

/** `log`: span of the event log, where the events of a period are sent. */
type Resend = { receiver: string; replay: string; log?: { from: string; until: string } | null };

async function requestResends(
  client: ApiClient,
  id: string | undefined,
  options: ResendInput,
): Promise<Resend[]> {
  const { to: receivers, since, until, type: types } = options;
  if (id !== undefined) {
    if ([since, until, types].some((one) => one !== undefined))
      throw new Error('found an id with --since, --until or --type, expected one or the other');
    const body = { receivers };
    if (id.startsWith('evt_'))
      return (await client.call(resendOfEvent, { params: { id }, body })).body.replays;
    const subject = await findSubject(client, id);
    const { replays, leftOut } = (await client.call(resendOfSubject, { params: { subject }, body })).body;
    if (leftOut > 0)
      remark(`${leftOut} of its events are not sent: they have left the log, or are before its newest 100`);
    return replays;
  }
  if (since === undefined) throw new Error('found no id, expected one, or --since and --to');
  if (receivers === undefined)
    throw new Error('found --since without --to, expected the receivers to send to');
  const resends: Resend[] = [];
  for (const name of receivers) {
    const { body } = await client.call(resendToReceiver, { params: { name }, body: { since, until, types } });
    resends.push(body);
  }
  return resends;
}

function show({ json }: ResendInput, { replays }: { replays: readonly Resend[] }): void {
  if (json === true) writeLine(JSON.stringify({ replays }, null, 2));
  else for (const { receiver, replay } of replays) writeLine(`replay ${replay} to ${receiver} was requested`);
}

/** Waits until all deliveries have ended. They continue without this command. */
async function watch(client: ApiClient, resends: readonly Resend[], options: ResendInput): Promise<void> {
  const stop = interrupted();
  let isStopped = false;
  void stop.wait.then(() => {
    isStopped = true;
  });
  for (const { receiver, replay } of resends)
    remark(`replay ${replay} to ${receiver}: waiting for its end; Ctrl-C does not stop it`);
  const ended = [];
  for (const { receiver, replay, log } of resends) {
    let now = (await client.call(readReplay, { params: { id: replay } })).body;
    while (!now.ended && !isStopped) {
      await Promise.race([stop.wait, sleep(CHECK_EVERY_MS)]);
      now = (await client.call(readReplay, { params: { id: replay } })).body;
    }
    ended.push(log === undefined ? now : { ...now, log });
    if (now.dead > 0) process.exitCode = EXIT.failed;
    if (options.json === true) continue;
    const { opened, delivered, dead } = now;
    writeLine(
      now.ended
        ? `${receiver}: ${opened} ${opened === 1 ? 'event' : 'events'} sent once more: ${delivered} delivered, ${dead} dead letters`
        : `${receiver}: ${opened} queued, ${delivered} delivered, ${dead} dead letters; it goes on by itself (replay ${replay})`,
    );
    if (now.ended && opened === 0) writeLine(nothingSelected(receiver, log));
  }
  if (options.json === true) writeLine(JSON.stringify({ replays: ended }, null, 2));
  stop.release();
}

/** Explains why nothing may have been sent: most often the log does not cover the period. */
function nothingSelected(receiver: string, log: Resend['log']): string {
  const held = log == null ? 'nothing' : `events from ${log.from} to ${log.until}`;
  return `no event was selected for ${receiver}: the log holds ${held}; see --since, --until and --type, and the events that the receiver takes`;
}
