import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeClone } from '../support/clone.ts';
import { npm } from '../support/npm.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { pageBlocks } from '../support/page-blocks.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { Program } from '../support/program.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { signedRequest } from '../support/signed-request.ts';
import { WEBHOOK_SECRET } from '../support/webhook-receiver.ts';

const { later } = opening();
const ROOT = resolve(import.meta.dirname, '../..');

const PROGRAM = `
import { createServer } from 'node:http';
import { createConsumer, createPostgresInbox, nodeHandler } from 'intentwatch-consumer';
import pg from 'pg';

const inbox = createPostgresInbox({ pool: new pg.Pool({ connectionString: process.env.POSTGRES_URL }) });
await inbox.createTables();
const consumer = createConsumer({ secrets: process.env.WEBHOOK_SECRET ?? '', inbox })
  .on('intent.filled', async (event, { tx }) => {
    await tx.query('INSERT INTO effects (event_id) VALUES ($1)', [event.id]);
  })
  .on('*', () => undefined);
const server = createServer(nodeHandler(consumer));
server.listen(0, '127.0.0.1', () => console.log('listening', server.address().port, process.version));
`;

/** A check for the compiler with the types of the package alone. */
const TYPED = `
import { createConsumer, createPostgresInbox, type EventOf, type FactKind } from 'intentwatch-consumer';
import pg from 'pg';

const inbox = createPostgresInbox<pg.PoolClient>({ pool: new pg.Pool() });
const consumer = createConsumer({ secrets: 'whsec_', inbox });
consumer.on('intent.filled', async (event, { tx, fact, isStale, isRecordStale }) => {
  const type: 'intent.filled' = event.type;
  const client: pg.PoolClient = tx;
  const kind: FactKind = fact;
  const stale: boolean = isStale || isRecordStale;
  await client.query('SELECT $1', [type, kind, stale]);
});
// @ts-expect-error: no type of event
consumer.on('intent.fillled', () => undefined);
export const kindOf = (event: EventOf<'vault.failed'>): 'vault' => event.data.subject.kind;
`;

let folder = '';
let project = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'intentwatch-consumer-package-'));
  const clone = join(folder, 'clone');
  project = join(folder, 'project');
  await mkdir(clone);
  await mkdir(project);
  await makeClone(clone);
  await npm(['pack', '--pack-destination', folder], join(clone, 'consumer'));
  const tarball = (await readdir(folder)).find((file) => file.endsWith('.tgz')) ?? 'none';
  await writeFile(
    join(project, 'package.json'),
    JSON.stringify({ name: 'shop', private: true, type: 'module' }),
  );
  await npm(['install', join(folder, tarball)], project);
  // The project's own dependencies.
  await symlink(join(ROOT, 'node_modules/pg'), join(project, 'node_modules/pg'));
  await symlink(join(ROOT, 'node_modules/@types'), join(project, 'node_modules/@types'));
  await writeFile(join(project, 'receive.js'), PROGRAM);
});

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));

test('the package has JavaScript with types, the tables, the vectors and how to begin, and depends on nothing', async () => {
  const installed = join(project, 'node_modules/intentwatch-consumer');
  const files = await readdir(installed, { recursive: true });
  for (const expected of [
    ...['README.md', 'LICENSE', 'vectors.json', 'sql/postgres.sql', 'sql/sqlite.sql'],
    ...['dist/index.js', 'dist/index.d.ts'],
  ])
    expect(files).toContain(expected);
  expect(files.filter((file) => /^(src|node_modules)\b/.test(file))).toEqual([]);
  const others = (await readdir(join(project, 'node_modules'))).filter((name) => !name.startsWith('.'));
  expect(others.sort()).toEqual(['@types', 'intentwatch-consumer', 'pg']);
});

async function complaintOf(program: string, { file, resolution }: { file: string; resolution: string }) {
  await writeFile(join(project, file), program);
  const options = { nodenext: ['--module', 'nodenext'], bundler: ['--module', 'esnext'] }[resolution] ?? [];
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const flags = [
    '--noEmit',
    '--strict',
    '--target',
    'es2022',
    '--types',
    'node',
    '--moduleResolution',
    resolution,
  ];
  const { stdout } = await promisify(execFile)(tsc, [...flags, ...options, file], { cwd: project }).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
}

test.each([
  'nodenext',
  'bundler',
])('its types are found by the compiler with moduleResolution %s', async (resolution) => {
  expect(await complaintOf(TYPED, { file: `typed-${resolution}.ts`, resolution })).toBe('');
});

test('the programs of docs/consumer.md compile', async () => {
  const blocks = pageBlocks(await readFile(join(ROOT, 'docs/consumer.md'), 'utf8'));
  const programs = blocks.filter(({ language }) => language === 'ts');
  expect(programs.length).toBeGreaterThan(0);
  for (const { code, line } of programs) {
    expect(await complaintOf(code, { file: `page-${line}.ts`, resolution: 'nodenext' })).toBe('');
  }
});

const NODES = [
  { major: 20, part: PARTS.node20 },
  { major: 26, part: PARTS.node26 },
];

for (const { major, part } of NODES) {
  const needed = needs(part, PARTS.postgres);
  test.skipIf(needed.skip)(
    `is used on Node ${major}, and handles an event that comes twice once${needed.note}`,
    async () => {
      const postgres = await PostgresProcess.start();
      later(() => postgres.close());
      const client = new pg.Client({ connectionString: postgres.url });
      await client.connect();
      await client.query('CREATE TABLE effects (event_id text NOT NULL)');

      const env = { POSTGRES_URL: postgres.url, WEBHOOK_SECRET };
      const program = await Program.run([part.place ?? '', join(project, 'receive.js')], env);
      const [, port, version] = await program.line(/^listening (\d+) (\S+)/);
      expect(version).toMatch(new RegExp(`^v${major}\\.`));
      const event = renderedEvent();
      const post = async (): Promise<number> => {
        const { headers, body } = signedRequest(event);
        const sent = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
        const init = { method: 'POST', headers: sent, body: new Uint8Array(body) };
        return (await fetch(`http://127.0.0.1:${port}/`, init)).status;
      };
      expect([await post(), await post()]).toEqual([204, 204]);
      const { rows } = await client.query('SELECT event_id FROM effects');
      expect(rows).toEqual([{ event_id: event.id }]);
      await client.end();
      await program.end('SIGKILL');
    },
  );
}
