import { randomBytes } from 'node:crypto';
import { appendFile, chmod, lstat, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cannedServer } from '../support/canned-server.ts';
import { eventually } from '../support/eventually.ts';
import type { Program } from '../support/program.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const LOCK_PROGRAM = join(import.meta.dirname, '../support/lock-program.ts');

const OWN = [
  '.intentwatch-folder',
  'appendonlydir',
  'appendonlydir/appendonly.aof.1.base.rdb',
  'appendonlydir/appendonly.aof.1.incr.aof',
  'appendonlydir/appendonly.aof.manifest',
  'books.sqlite',
  'daemon.lock',
  'daemon.pid',
];

/** The rights on everything in a folder but sockets, and on the folder (`.`), such as `600`. Vanished files were temporary. */
async function rightsIn(folder: string): Promise<Record<string, string>> {
  const names = ['.', ...(await readdir(folder, { recursive: true }))].sort();
  const all = await Promise.all(
    names.map(async (name) => {
      const found = await lstat(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null;
        throw error;
      });
      return found === null ? [] : [[name, found] as const];
    }),
  );
  const stored = all.flat().filter(([, found]) => !found.isSocket() && !found.isSymbolicLink());
  return Object.fromEntries(stored.map(([name, { mode }]) => [name, (mode & 0o777).toString(8)]));
}

/** A daemon's log lines under names that begin with `data.`, with the relevant members. */
function logged(daemon: Program): { msg: string; repaired?: string[]; command?: string }[] {
  return daemon.stdout.map((line) => JSON.parse(line)).filter(({ msg }) => msg.startsWith('data.'));
}

test('only the owner can read the files of the daemon, and a folder that was there before is not changed', async ({
  onTestFinished,
}) => {
  const upstream = await cannedServer(() => ({ status: 503, body: '' }));
  onTestFinished(() => upstream.close());
  const stage = new Stage(onTestFinished);
  const base = await stage.folder();
  const [dataDir, open] = [join(base, 'made/data'), join(base, "user's own")];

  /** Starts a daemon under a umask of 0, ends it once it has books, and returns it. */
  const runIn = async (folder: string, whileRunning = async () => {}): Promise<Program> => {
    const file = await stage.config({
      dataDir: folder,
      upstreamUrl: upstream.url,
      receiver: { url: 'http://127.0.0.1:9/', secret: `whsec_${randomBytes(32).toString('base64')}` },
      subscriptions: [{ name: 'orders', intents: [hashOf(1)], receivers: [RECEIVER_NAME] }],
    });
    await appendFile(file, '\nbooks: {}\n');
    const before = process.umask(0);
    const starting = stage.daemon(file);
    process.umask(before);
    const daemon = await starting;
    await eventually('the books are there', async () => (await readdir(folder)).includes('books.sqlite-wal'));
    await whileRunning();
    expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
    return daemon;
  };

  const first = await runIn(dataDir, async () => {
    expect(Object.entries(await rightsIn(dataDir)).filter(([, rights]) => !/^[67]00$/.test(rights))).toEqual(
      [],
    );
  });
  expect(Object.keys(await rightsIn(dataDir))).toEqual(expect.arrayContaining(OWN));
  expect(await rightsIn(join(base, 'made'))).toMatchObject({ '.': '700', '.intentwatch-folder': '600' });
  expect(logged(first)).toEqual([]);

  for (const name of Object.keys(await rightsIn(dataDir))) await chmod(join(dataDir, name), 0o777);
  await writeFile(join(dataDir, 'notes.txt'), 'of the user');
  await chmod(join(dataDir, 'notes.txt'), 0o644);
  await writeFile(join(base, 'elsewhere'), '');
  await chmod(join(base, 'elsewhere'), 0o644);
  await symlink(join(base, 'elsewhere'), join(dataDir, 'dump.rdb'));
  const second = await runIn(dataDir, async () => {
    // The repair still has the lock on the folder.
    await (await stage.program(LOCK_PROGRAM, [dataDir])).line(/^in use$/);
  });
  const open0 = Object.entries(await rightsIn(dataDir)).filter(([, rights]) => !/^[67]00$/.test(rights));
  expect(open0).toEqual([['notes.txt', '644']]);
  expect((await lstat(join(base, 'elsewhere'))).mode & 0o777).toBe(0o644);
  expect(logged(second)).toEqual([
    expect.objectContaining({
      msg: 'data.closed',
      repaired: expect.arrayContaining([dataDir, ...OWN.map((name) => join(dataDir, name))]),
    }),
  ]);

  await mkdir(open);
  await chmod(open, 0o755);
  await writeFile(join(open, 'books.csv'), 'of the user');
  await chmod(join(open, 'books.csv'), 0o644);
  const third = await runIn(open);
  const { '.': folder, 'books.csv': users, ...made } = await rightsIn(open);
  expect({ folder, users }).toEqual({ folder: '755', users: '644' });
  expect(Object.entries(made).filter(([, rights]) => !/^[67]00$/.test(rights))).toEqual([]);
  expect(made).not.toHaveProperty('.intentwatch-folder');
  const command = `chmod 700 '${open.replace("'", `'\\''`)}'`;
  expect(logged(third)).toEqual([expect.objectContaining({ msg: 'data.readable', command })]);
});
