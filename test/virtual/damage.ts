import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program } from '../support/program.ts';
import { DAMAGES, type Damage } from './damages.ts';

// Breaks each rule of an operator's life once, by one line in a copy of the program, and checks that the model notices. Exits
// with 0 only if it notices all expected damages.

const ROOT = join(import.meta.dirname, '../..');
const SEEDS = [1, 3, 4, 5, 7, 12];
const ACTS = 60;
const NO_DAMAGE = { file: 'package.json', find: '"scripts": {', replace: '"scripts": {' };

/** True, by seed and acts, when the life adds up without damage. A life that does not proves nothing. */
const sound = new Map<string, Promise<boolean>>();

function isSound(seed: number, acts: Damage['acts']): Promise<boolean> {
  const key = JSON.stringify([seed, acts]);
  const result =
    sound.get(key) ??
    lifeWith({ ...NO_DAMAGE, ...(acts === undefined ? {} : { acts }) }, seed).then(
      (problem) => problem === null,
    );
  sound.set(key, result);
  return result;
}

/** Lives by some seeds with one line changed. Returns the first seed that adds up only without the change, and the problem. */
async function firstNoticed(damage: Damage): Promise<{ seed: number; problem: string } | null> {
  for (const seed of SEEDS) {
    const problem = await lifeWith(damage, seed);
    if (problem === null) continue;
    if (await isSound(seed, damage.acts)) return { seed, problem };
    process.stderr.write(`seed ${seed} does not add up without damage\n`);
  }
  return null;
}

/** Lives by a seed on a copy with one line changed. Returns the first problem; null where all adds up. */
async function lifeWith(
  { acts, also, ...edit }: Omit<Damage, 'rule' | 'unnoticed'>,
  seed: number,
): Promise<string | null> {
  const copy = await mkdtemp(join(tmpdir(), 'intentwatch-damage-'));
  try {
    for (const part of ['src', 'sandbox', 'demo', 'test', 'package.json', 'tsconfig.json'])
      await cp(join(ROOT, part), join(copy, part), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    for (const { file, find, replace } of also === undefined ? [edit] : [edit, also]) {
      const text = await readFile(join(copy, file), 'utf8');
      if (text.split(find).length !== 2) throw new Error(`${file} has not one ${find}`);
      await writeFile(
        join(copy, file),
        text.replace(find, () => replace),
      );
    }
    const lived = acts === undefined ? ['--acts', String(ACTS)] : ['--act', ...acts];
    const args = ['--virtual', '--seed', String(seed), ...lived];
    const life = await Program.start(join(copy, 'test/chaos/operator.ts'), args);
    const { code } = await life.ending();
    const [, problem = 'it ended with an error'] = /^ {2}(?!\d\d-\d\d)(.*)$/m.exec(life.output()) ?? [];
    return code === 0 ? null : problem;
  } finally {
    await rm(copy, { recursive: true, force: true, maxRetries: 5 });
  }
}

const wanted = process.argv[2];
const open = DAMAGES.filter(({ rule }) => wanted === undefined || rule.includes(wanted));
process.stdout.write('| rule | noticed | first problem |\n|---|---|---|\n');
const work = async (): Promise<void> => {
  for (let damage = open.shift(); damage !== undefined; damage = open.shift()) {
    const { rule, unnoticed } = damage;
    if (unnoticed !== undefined) {
      process.stdout.write(`| ${rule} | not by a life | ${unnoticed} |\n`);
      continue;
    }
    const found = await firstNoticed(damage);
    const seen = found === null ? 'no' : `seed ${found.seed}`;
    process.stdout.write(`| ${rule} | ${seen} | ${found?.problem.slice(0, 160) ?? ''} |\n`);
    if (found === null) process.exitCode = 1;
  }
};
await Promise.all(Array.from({ length: availableParallelism() }, work));
