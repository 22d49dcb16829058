import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { sumsCsv, transfersCsv } from '../../src/books/formats/csv.ts';
import { reportHtml } from '../../src/books/formats/report.ts';
import { REPORT } from '../../src/domain/books/report-schema.ts';
import { EXIT } from '../../src/exit.ts';
import { ADMIN_TOKEN, apiStage, READ_TOKEN } from '../support/api-stage.ts';
import { BooksStage, DAY_MS, FIRST_MS, reportedEvent } from '../support/books-stage.ts';
import { type Ran, runCommand } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { Program } from '../support/program.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const OPTIONAL = needs(PARTS.postgres);

const { later, started } = opening();

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;

async function reconcile(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  return runCommand(['reconcile', ...args], env);
}

async function reconcileAsProgram(args: readonly string[]) {
  const program = await Program.start(MAIN, ['reconcile', ...args]);
  const { code } = await program.ending();
  return { code, out: program.stdout.join('\n'), err: program.stderr.join('\n') };
}

/**
 * A config beside a file of books with one delivered transfer; its destination chain has an endpoint. `readMs`: time at which the
 * event log was read to its end last, 0 for never.
 */
async function stored(more: object, readMs = FIRST_MS + DAY_MS): Promise<string> {
  const books = await BooksStage.open();
  later(() => books.discard());
  const common = { transfer: 1, amount: 1_000_000n };
  await books.ingest(
    { ...common, sequence: 1, status: 'pending', atMs: 1_000, seenMs: 1_000 },
    { ...common, sequence: 2, status: 'filled', atMs: 9_000, seenMs: 9_000 },
  );
  await books.read(readMs);
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-read-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const config = {
    upstream: { baseUrl: 'https://api.example.com', apiKey: 'key' },
    dataDir: dirname(books.file),
    books: {},
    receivers: [{ name: 'hook', type: 'webhook', url: 'https://example.com/', secrets: [SECRET] }],
    subscriptions: [{ name: 's', intents: [hashOf(1)], receivers: ['hook'] }],
    ...more,
  };
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, stringify(config));
  return file;
}

test('reconcile prints the stored books of a day in every form, and ends with 78 for a day or zone that is none', async () => {
  const file = await stored({});
  const read = (...args: string[]) =>
    reconcile(['--config', file, '--store', '--day', '2026-11-21', ...args]);
  const [json, csv, sums, html, text, tokyo, badZone, badDay] = await Promise.all([
    read('--format', 'json'),
    reconcileAsProgram(['--config', file, '--store', '--day', '2026-11-21', '--format', 'csv']),
    read('--format', 'sums-csv'),
    read('--format', 'html'),
    read(),
    read('--zone', 'Asia/Tokyo', '--format', 'json'),
    read('--zone', 'Mars/Olympus'),
    reconcile(['--config', file, '--store', '--day', '2026-02-30']),
  ]);
  expect([json, csv, sums, html, text, tokyo].map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0]);
  const report = REPORT.parse(JSON.parse(json.out));
  expect(report.balances[0]).toMatchObject({ started: { amount: '1000000' }, ended: { count: 1 } });
  expect(csv.out.split('\n')).toHaveLength(2);
  expect(sums.out).toContain('1000000');
  expect(html.out).toMatch(/^<!doctype html>/i);
  expect(text.out).toContain('No exceptions.');
  expect(REPORT.parse(JSON.parse(tokyo.out)).from).toBe(new Date(FIRST_MS - 9 * 3_600_000).toISOString());
  for (const { code, err } of [badZone, badDay]) {
    expect(code).toBe(EXIT.badConfig);
    expect(err).toMatch(/found .*, expected /);
  }
});

test('a report of an event log that was not read to its end states it, and one that was never ends with 75', async () => {
  const read = async (readMs: number) =>
    reconcile(['--config', await stored({}, readMs), '--store', '--day', '2026-11-21']);
  const [never, late, whole] = [await read(0), await read(FIRST_MS + 10_000), await read(FIRST_MS + DAY_MS)];
  expect([never, late, whole].map(({ code }) => code)).toEqual([EXIT.tryAgain, 0, 0]);
  expect(never.out).toContain('The event log was not read to its end yet: events are missing.');
  expect(never.err).toContain('have not read the event log to its end yet');
  expect(late.out).toMatch(/was read to its end at 2026-11-21T00:00:10\S+ last: later events are missing/);
  expect(whole.out).not.toContain('missing');
});

test('every token of the rows is among those of the sums, in any letter case of the record', async () => {
  const books = await BooksStage.open();
  later(() => books.discard());
  const reported = {
    transfer: 1,
    amount: 1_000_000n,
    status: 'filled',
    atMs: 9_000,
    seenMs: 9_000,
    sequence: 1,
  };
  const token = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
  const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
  const from = { chainId: 8453, token, amount: '1000000', txHash: hashOf(1) };
  const to = { chainId: 792703809, token: mint, amount: '999990', txHash: hashOf(2) };
  const event = reportedEvent(reported);
  const record = { ...event.data.record, sourceTx: from, destinationTx: to };
  await books.ingest({ ...reported, more: { record } });
  const report = await books.reader().report({ day: '2026-11-21' }, FIRST_MS + 10_000);
  const tokensOf = (csv: Iterable<string>): Set<string> => {
    const [names, ...rows] = [...csv].map((line) => line.trimEnd().split(','));
    const places = (names ?? []).flatMap((name, at) => (name.endsWith('token_address') ? [at] : []));
    return new Set(rows.flatMap((row) => places.map((at) => row[at] ?? '')).filter((cell) => cell !== ''));
  };
  const [ofRows, ofSums] = [tokensOf(transfersCsv(report)), tokensOf(sumsCsv(report))];
  expect(ofRows).toEqual(new Set([token.toLowerCase(), mint]));
  expect(ofRows.difference(ofSums)).toEqual(new Set());
  const [row] = report.transfers;
  expect([row?.sent?.token, row?.delivered?.token]).toEqual([
    report.balances[0]?.token,
    report.delivered[0]?.token,
  ]);
});

test('a day that has not begun has no books', async () => {
  const books = await BooksStage.open();
  later(() => books.discard());
  const read = (zone: string) => books.reader().report({ day: '2026-11-22', zone }, FIRST_MS + DAY_MS - 1);
  await expect(read('UTC')).rejects.toThrow(/^found 2026-11-22, expected a day that has begun$/);
  expect((await read('Asia/Tokyo')).notes.join()).toContain('The day is not over.');
});

test('every column of the page has its heading where the rows are stacked, and the page needs nothing from elsewhere', async () => {
  const books = await BooksStage.open();
  later(() => books.discard());
  await books.ingest({
    transfer: 1,
    amount: 1_000_000n,
    status: 'filled',
    atMs: 9_000,
    seenMs: 9_000,
    sequence: 1,
  });
  const page = [...reportHtml(await books.reader().report({ day: '2026-11-21' }, FIRST_MS + 10_000))].join(
    '',
  );
  const tables = [...page.matchAll(/<table[^>]* style="([^"]*)"><thead>(.*?)<\/thead>/g)];
  expect(tables.length).toBeGreaterThan(2);
  for (const [, style, head] of tables) {
    const titles = [...(head ?? '').matchAll(/<th[^>]*>([^<]*)</g)].map(([, title]) => title);
    expect(style).toBe(titles.map((title, at) => `--c${at + 1}: '${title}'`).join('; '));
    expect(page).toContain(`td:nth-child(${titles.length})::before { content: var(--c${titles.length}); }`);
  }
  expect(page).not.toMatch(/<script|<link|\ssrc=|url\(|@import/);
});

test('reconcile names deliveries without proof on a chain with endpoints', async () => {
  const rpc = [{ name: 'own', url: 'http://127.0.0.1:9/' }];
  const [off, on] = await Promise.all(
    [{}, { chains: { 42161: { rpc } } }].map(async (more) => {
      const file = await stored(more);
      const { out } = await reconcile(['--config', file, '--store', '--day', '2026-11-21', '--json']);
      return REPORT.parse(JSON.parse(out)).exceptions.map(({ kind }) => kind);
    }),
  );
  expect({ off, on }).toEqual({ off: [], on: ['unproven'] });
});

test('reconcile reports a config without books', async () => {
  const file = await stored({ books: undefined });
  const { code, err } = await reconcile(['--config', file, '--store']);
  expect(code).toBe(EXIT.badConfig);
  expect(err).toContain('found no books, expected a section books');
});

async function api(more: object) {
  const hooks = {
    backend: await started(new Hook()),
    broken: await started(new Hook()),
    operator: await started(new Hook()),
  };
  const stage = await apiStage(hooks, { later, more });
  const request = async (path: string, token = READ_TOKEN) => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${stage.url}/api/v1/books/${path}`, { headers });
    return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
  };
  return { stage, request };
}

const today = (): string => new Date().toISOString().slice(0, 10);

test.skipIf(OPTIONAL.skip)(
  `the API and the command give the books of the running daemon${OPTIONAL.note}`,
  async () => {
    const postgres = await PostgresProcess.start();
    later(() => postgres.close());
    const { stage, request } = await api({ books: { url: postgres.url } });
    stage.setStatus(hashOf(1), 'pending');
    const began = today();
    const { day, report } = await eventually('the transfer is in the books', async () => {
      // It may be polled before midnight, or after it.
      for (const day of new Set([began, today()])) {
        const { status, text } = await request(day);
        const report = status === 200 ? REPORT.parse(JSON.parse(text)) : null;
        if (report?.transfers.length === 1) return { day, report };
      }
      return null;
    });
    expect(report.transfers[0]).toMatchObject({
      subject: `intent:${hashOf(1)}`,
      metadata: { order: '1042' },
    });
    const answers = await Promise.all(
      [
        `${day}?format=csv`,
        `${day}?format=html`,
        `${day}?zone=Mars/Olympus`,
        '2026-02-30',
        'today',
        '2001-01-01',
        `${day}?format=xml`,
      ].map((path) => request(path)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 409, 409, 400, 404, 400]);
    expect(answers[0]?.type).toBe('text/csv; charset=utf-8');
    expect(answers[0]?.text).toContain(hashOf(1));
    expect(answers[1]?.text).toMatch(/^<!doctype html>/i);
    expect((await request(day, 'no-such-token')).status).toBe(401);
    const env = { INTENTWATCH_URL: stage.url, INTENTWATCH_TOKEN: ADMIN_TOKEN };
    const { code, out } = await reconcile(['--day', day, '--json'], env);
    expect(code).toBe(EXIT.done);
    expect(REPORT.parse(JSON.parse(out)).transfers).toHaveLength(1);
  },
);

test('the API reports that no books are stored', async () => {
  const { request } = await api({});
  const { status, text } = await request('2026-11-21');
  expect(status).toBe(404);
  expect(text).toContain('expected a section books in the config');
});
