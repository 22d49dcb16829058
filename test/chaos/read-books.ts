import pg from 'pg';
import { type BooksReport, REPORT } from '../../src/domain/books/report-schema.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';
import { logEntries } from '../support/log-entries.ts';
import { Program } from '../support/program.ts';
import { blindSpots } from './books-blind.ts';
import { ENV, MAIN, PREFIX } from './books-setup.ts';
import type { BooksTruth } from './books-truth.ts';
import { storeEvidence } from './evidence.ts';
import type { Disruption } from './reckoning.ts';

export type Reports = readonly [BooksReport, BooksReport];

type WriteLine = (line: string) => void;

/** Reads the whole event log. */
export async function readLog(url: string): Promise<LogEntry[]> {
  const client = connect({ kind: 'server', url });
  try {
    return await logEntries(client, new Keys(PREFIX));
  } finally {
    await disconnect(client);
  }
}

/** Reads the books of both days with the command; null where one cannot be read now. */
export async function readReports(
  [day, next]: readonly [string, string],
  configFile: string,
  writeLine: WriteLine,
): Promise<Reports | null> {
  const read = async (name: string): Promise<BooksReport | null> => {
    const args = ['reconcile', '--config', configFile, '--store', '--day', name, '--format', 'json'];
    const program = await Program.start(MAIN, args, ENV);
    await program.ending();
    if (program.stdout.length > 0) return REPORT.parse(JSON.parse(program.stdout.join('\n')));
    writeLine(`reconcile --day ${name}: ${program.output()}`);
    return null;
  };
  const [first, second] = await Promise.all([read(day), read(next)]);
  return first === null || second === null ? null : [first, second];
}

/** Prints the counts of a run. */
export function writeCounts(
  { reports, truth }: { reports: Reports; truth: BooksTruth },
  { disruptions, writeLine }: { disruptions: readonly Disruption[]; writeLine: WriteLine },
): void {
  const counts = (list: readonly string[]): string =>
    [...Map.groupBy(list, (one) => one)].map(([one, all]) => `${one} ${all.length}`).join(', ') || 'none';
  writeLine(`faults: ${counts(disruptions.map(({ what, victim }) => `${victim} ${what}`))}`);
  writeLine(`transfers made: ${truth.transfers.length}`);
  for (const { day, state, transfers, exceptions, balances, delivered } of reports) {
    const late = transfers.filter((row) => row.late).length;
    writeLine(
      `${day} (${state}): ${transfers.length} transfers, ${late} late, ${balances.length} balances, ${delivered.length} sums`,
    );
    const counted = (name: 'opening' | 'started' | 'ended' | 'closing'): number =>
      balances.reduce((sum, balance) => sum + balance[name].count, 0);
    writeLine(
      `  opening ${counted('opening')} + started ${counted('started')} - ended ${counted('ended')} = closing ${counted('closing')}`,
    );
    writeLine(`  exceptions: ${counts(exceptions.map(({ kind }) => kind))}`);
  }
}

/** Tries to omit or alter parts of correct books unnoticed. Returns the alterations that go unnoticed. */
export function unnoticedIn(
  { reports, truth }: { reports: Reports; truth: BooksTruth },
  writeLine: WriteLine,
): string[] {
  const { tried, unnoticed } = blindSpots(reports, truth);
  writeLine(`left out or altered by turns: ${tried}, unnoticed ${unnoticed.length}`);
  return unnoticed.map((what) => `unnoticed: ${what}`);
}

/** Stores the books' rows of the transfers that problems name. Returns the folder. */
export async function storeRows(
  problems: readonly string[],
  { seed, truth, url }: { seed: number; truth: BooksTruth | undefined; url: string },
): Promise<string> {
  const subjects = [
    ...new Set(problems.flatMap((problem) => problem.match(/intent:0x[0-9a-f]+/i)?.[0] ?? [])),
  ];
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const rowsOf = async (text: string): Promise<object[]> => (await client.query(text, [subjects])).rows;
    return await storeEvidence(seed, {
      problems,
      truth: (truth?.transfers ?? []).filter(({ subject }) => subjects.includes(subject)),
      events: await rowsOf('SELECT * FROM books_events WHERE subject = ANY($1) ORDER BY subject, sequence'),
      deliveries: await rowsOf(
        'SELECT d.* FROM books_deliveries d JOIN books_events e USING (event_id) WHERE e.subject = ANY($1)',
      ),
    });
  } finally {
    await client.end();
  }
}
