import { join } from 'node:path';
import type { Event } from '../../src/domain/events/event.ts';
import { isOperatorKind } from '../../src/domain/events/event-types.ts';
import { Backlog } from '../../src/store/backlog.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';
import { eventually } from '../support/eventually.ts';
import { logEntries } from '../support/log-entries.ts';
import { Program } from '../support/program.ts';
import { SandboxProcess } from '../support/sandbox-process.ts';
import type { Delivery } from './reckoning.ts';

/** The subjects of the sandbox from its start. */
export type Subjects = Awaited<ReturnType<SandboxProcess['subjects']>>;

const MAIN = join(import.meta.dirname, '../../src/main.ts');

export const DRAIN_MS = 400_000;

export const PREFIX = 'intentwatch';

/** More attempts than any failure here can use up. */
export const RETRIES = { delays: ['200ms', '500ms', ...Array.from({ length: 90 }, () => '1s')] };

/** Starts a sandbox whose transfers are yet to be born; `more` are further flags. */
export async function startSandbox(
  seed: number,
  closers: (() => Promise<unknown>)[],
  more: Readonly<Record<string, number>> = {},
): Promise<SandboxProcess> {
  const flags = {
    port: 0,
    'control-port': 0,
    'transfers-per-second': 0,
    seed,
    wallets: 8,
    'time-scale': 30,
    ...more,
  };
  const args = Object.entries(flags).map((flag) => `--${flag.join('=')}`);
  const program = await Program.start(MAIN, ['sandbox', ...args]);
  closers.push(() => program.end('SIGKILL'));
  return SandboxProcess.of(program);
}

/** True when a subject is watched from its birth: the subjects of the config, and the transfers of its wallets, which are all. */
export function watchedOf(
  subjects: Subjects,
  made: Awaited<ReturnType<SandboxProcess['transitions']>>,
  fromMs: number,
): (subject: string) => boolean {
  const named = new Set([
    ...subjects.quotes.map((uuid) => `quote:${uuid}`),
    ...subjects.gaslessJobs.map((uuid) => `gasless:${uuid}`),
    ...subjects.vaults.map(({ address, chainId }) => `vault:${chainId}:${address.toLowerCase()}`),
  ]);
  const births = made.filter(({ subject, from }) => subject.startsWith('intent:') && from === null);
  const early = new Set(births.filter(({ at }) => at < fromMs).map(({ subject }) => subject));
  return (subject) => (subject.startsWith('intent:') ? !early.has(subject) : named.has(subject));
}

/**
 * Waits until the last status of everything is in the event log and no delivery is open. Returns the events except those for
 * operators, which no receiver here gets; a busy machine causes some of them.
 */
export async function drained(
  redisUrl: string,
  wanted: { last: ReadonlyMap<string, string>; receivers: readonly string[] },
): Promise<Event[]> {
  const client = connect({ kind: 'server', url: redisUrl });
  try {
    const keys = new Keys(PREFIX);
    const log = new EventLog(client, keys);
    const backlog = new Backlog(client, keys);
    const read = async (): Promise<Event[]> =>
      (await logEntries(client, keys)).flatMap((entry) =>
        entry.kind === 'event' && !isOperatorKind(entry.event.data.subject.kind) ? [entry.event] : [],
      );
    const isDrained = async (): Promise<boolean> => {
      const reported = new Map((await read()).map(({ data }) => [data.subject.id, data.status]));
      if ([...wanted.last].some(([subject, status]) => reported.get(subject) !== status)) return false;
      const newest = await log.newest();
      const cursors = await client.hgetall(keys.cursors);
      if (Object.values(cursors).some((cursor) => cursor !== newest)) return false;
      const open = await Promise.all(wanted.receivers.map((name) => backlog.counts(name)));
      return open.every(({ pending }) => pending === 0);
    };
    // An event that was not reported by then is lost, and the reckoning names it.
    await eventually('everything has drained', isDrained, DRAIN_MS).catch((error: unknown) =>
      process.stdout.write(`${String(error)}\n`),
    );
    return await read();
  } finally {
    await disconnect(client);
  }
}

/** Reads the whole event log, with the time of each commit. */
export async function wholeLog(redisUrl: string): Promise<LogEntry[]> {
  const client = connect({ kind: 'server', url: redisUrl });
  try {
    return await logEntries(client, new Keys(PREFIX));
  } finally {
    await disconnect(client);
  }
}

/** Describes the missing and superfluous arrivals at a receiver. */
export function problemsOf({ receiver, lost, invented, unexplained, outOfOrder }: Delivery): string[] {
  return [
    ...lost.map((id) => `${receiver}: ${id} was lost`),
    ...invented.map((id) => `${receiver}: ${id} was invented`),
    ...unexplained.map((what) => `${receiver}: ${what}, and nothing was disturbed`),
    ...outOfOrder.map((what) => `${receiver}: ${what}`),
  ];
}
