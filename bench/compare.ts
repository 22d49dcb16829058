import { execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import {
  type ComparedRun,
  RESULTS,
  type Results,
  readResults,
  resultsSchema,
  SIDES,
  type Side,
} from './compare/results.ts';
import { ROWS, type Row } from './compare/rows.ts';
import { COUNT } from './deliveries/sides.ts';

const ROOT = resolve(import.meta.dirname, '..');
const execute = promisify(execFile);

const OPTIONS = {
  before: { type: 'string' },
  after: { type: 'string', default: 'HEAD' },
  rows: { type: 'string', default: ROWS.map(({ name }) => name).join(',') },
  sides: { type: 'string', default: 'before,after,baseline' },
  rounds: { type: 'string' },
  minutes: { type: 'string', default: '150' },
  results: { type: 'string', default: RESULTS },
} as const;

/** Folders that replace those of a commit, so that the benchmarks of this tree run its program. */
const OVERLAID = ['bench', 'test/support'];

type Checkout = { commit: string; folder: string };

/**
 * Compares two commits: runs rows for the commit before, the commit after and the baseline in turns, each in a checkout of its
 * own with the benchmarks of this tree. Runs that `--results` has are not repeated, so that it can go on later. None begins after
 * `--minutes`. Prints nothing but what the benchmarks print; `npm run generate` makes the pages of the results.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (values.before === undefined) {
    console.error('--before: found nothing, expected a commit');
    return 1;
  }
  const names = values.rows.split(',');
  const unknown = names.filter((name) => ROWS.every((row) => row.name !== name));
  if (unknown.length > 0) {
    console.error(`--rows: found ${unknown.join(', ')}, expected ${ROWS.map(({ name }) => name).join(', ')}`);
    return 1;
  }
  const sides = SIDES.filter((side) => values.sides.split(',').includes(side));
  const endMs = performance.now() + 60_000 * Number(values.minutes);
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-compare-'));
  const checkouts: Checkout[] = [];
  // Checkouts of a run that was killed.
  await git('worktree', 'prune');
  try {
    const [before, after] = [await checkOut(values.before, folder), await checkOut(values.after, folder)];
    checkouts.push(before, after);
    const of: Record<Side, Checkout> = { before, after, baseline: after };
    let failed = 0;
    for (const row of ROWS.filter(({ name }) => names.includes(name))) {
      const rounds = values.rounds === undefined ? row.rounds : COUNT.parse(values.rounds);
      for (const { side, round } of missingRuns(row, { rounds, sides, of, results: values.results })) {
        if (performance.now() > endMs) {
          console.log('the time is over: the same command goes on here');
          return 1;
        }
        if (!(await measure(row, { side, round, checkout: of[side], results: values.results }))) failed++;
      }
    }
    return failed === 0 ? 0 : 1;
  } finally {
    for (const checkout of checkouts) await removeCheckout(checkout);
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function git(...args: string[]): Promise<string> {
  return (await execute('git', args, { cwd: ROOT })).stdout.trim();
}

/** Makes a checkout with the installed packages and the benchmarks of this tree. */
async function checkOut(name: string, parent: string): Promise<Checkout> {
  const commit = await git('rev-parse', '--verify', `${name}^{commit}`);
  const folder = await mkdtemp(join(parent, 'checkout-'));
  await git('worktree', 'add', '--detach', '--force', folder, commit);
  // A copy: a start of the program installs what its lock file names, and removes the rest.
  await execute('cp', ['-a', '--reflink=auto', join(ROOT, 'node_modules'), folder]);
  for (const path of OVERLAID) {
    await rm(join(folder, path), { recursive: true, maxRetries: 5 });
    await cp(join(ROOT, path), join(folder, path), { recursive: true });
  }
  return { commit, folder };
}

async function removeCheckout({ folder }: Checkout): Promise<void> {
  await git('worktree', 'remove', '--force', folder);
}

/** Runs of a row that its results lack, in turns: each round begins with another side. */
function missingRuns(
  { name, flags }: Row,
  {
    rounds,
    sides,
    of,
    results,
  }: { rounds: number; sides: readonly Side[]; of: Record<Side, Checkout>; results: string },
): { side: Side; round: number }[] {
  const has = readResults(name, results)?.runs ?? [];
  const wanted = sides.filter((side) => side !== 'baseline' || flags === 'sides');
  return Array.from({ length: rounds }, (_, index) => {
    const turned = [...wanted.slice(index % wanted.length), ...wanted.slice(0, index % wanted.length)];
    return turned.map((side) => ({ side, round: index + 1 }));
  })
    .flat()
    .filter(
      ({ side, round }) =>
        !has.some((run) => run.side === side && run.round === round && run.commit === of[side].commit),
    );
}

/** Runs a benchmark once and stores its figures. False when it printed none. */
async function measure(
  row: Row,
  { side, round, checkout, results }: { side: Side; round: number; checkout: Checkout; results: string },
): Promise<boolean> {
  const json = join(checkout.folder, 'figures.json');
  await rm(json, { force: true });
  const args = [
    ...row.args,
    ...(row.flags === 'none' ? [] : ['--rounds=1']),
    ...(row.flags === 'sides' ? [`--side=${side === 'baseline' ? 'bare' : 'daemon'}`] : []),
  ];
  console.log(`\n${row.name}, round ${round}, ${side} (${checkout.commit.slice(0, 8)})`);
  const [load = 0] = loadavg();
  const startMs = performance.now();
  const at = new Date().toISOString();
  await runIn(checkout.folder, [join('bench', 'run.ts'), row.bench, ...args, `--json=${json}`]);
  const text = await readFile(json, 'utf8').catch(() => null);
  if (text === null) {
    console.log(`${row.name}: no figures`);
    return false;
  }
  const run: ComparedRun = {
    side,
    round,
    commit: checkout.commit,
    at,
    tookSeconds: Math.round((performance.now() - startMs) / 1_000),
    load,
    figures: JSON.parse(text),
  };
  await store(row, run, results);
  return true;
}

/** Runs Node on a file and passes its output on. A missed target is no failure here. */
async function runIn(cwd: string, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] });
  await new Promise<void>((ended, failed) => {
    child.once('close', () => ended());
    child.once('error', failed);
  });
}

/** Adds a run to the results of its row, in place of those of its side and round of another commit. */
async function store({ name, args }: Row, run: ComparedRun, folder: string): Promise<void> {
  const runs = (readResults(name, folder)?.runs ?? []).filter(
    ({ side, round, commit }) => side !== run.side || (round !== run.round && commit === run.commit),
  );
  const results: Results = resultsSchema.parse({ row: name, args: [...args], runs: [...runs, run] });
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${name}.json`), `${JSON.stringify(results, null, 2)}\n`);
}
