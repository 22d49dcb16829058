import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program } from '../support/program.ts';

// Breaks each rule of an operator's life once, by one line in a copy of the program, and shows whether the model notices.
// Exits with 0 only if it notices all that it is expected to notice.

/** A rule, and the line that breaks it. `unnoticed`: why no life can show it; another test does. */
type Damage = { rule: string; file: string; find: string; replace: string; unnoticed?: string };

const DAMAGES: readonly Damage[] = [
  {
    rule: 'what leaves the config is suspended',
    file: 'src/domain/subjects/suspended-roots.ts',
    find: 'if (!isCovered && (isGraced || before !== undefined)) {',
    replace: 'if (before === null) {',
  },
  {
    rule: 'what is suspended waits',
    file: 'src/store/commands/include/suspended.lua',
    find: 'local some = suspensionOf(wantedKey, root) and withheld or reported',
    replace: 'local some = reported',
  },
  {
    rule: 'a rename keeps the earliest start',
    file: 'src/domain/subjects/continued-roots.ts',
    find: 'return { name, atMs: atMs < oldest(staying, name) ? atMs : null };',
    replace: 'return { name, atMs: atMs < 0 ? atMs : null };',
  },
  {
    rule: 'a reload that removes much is held',
    file: 'src/daemon/large-removal.ts',
    find: 'const LEAST = 3;',
    replace: 'const LEAST = 3_000;',
  },
  {
    rule: 'a confirmation names the digest',
    file: 'src/daemon/reloads.ts',
    find: 'if (request.confirm === undefined || digest === request.confirm || state.state === ',
    replace: 'if (request.confirm !== "" || state.state === ',
  },
  {
    rule: 'a Redis that went back begins an epoch',
    file: 'src/store/commands/look-epoch-4.lua',
    find: 'local isBehind = hasLess or',
    replace: 'local isBehind = false and hasLess or',
  },
  {
    rule: 'a Redis that went back is synchronised',
    file: 'src/queues/deliveries/reconcile.ts',
    find: 'if (newest === null || behind !== null || upkeep.isPartlyApplied()) {',
    replace: 'if (newest === null || upkeep.isPartlyApplied()) {',
  },
  {
    rule: 'what was seen is stored outside Redis',
    file: 'src/store/epoch.ts',
    find: '(await this.#parts.file.read()) ?? NOTHING_SEEN',
    replace: 'NOTHING_SEEN',
  },
  {
    rule: 'a state that is found again has the id that it had',
    file: 'src/domain/events/event-id.ts',
    find: 'const hash = eventId([subject, type, canonicalJson(record), flag, payment]);',
    replace:
      'const hash = eventId([subject, type, canonicalJson(record), flag, payment, String(Date.now())]);',
  },
  {
    rule: 'what is dropped is named',
    file: 'src/store/suspensions.ts',
    find: 'eventIds: ids.slice(0, MOST_NAMED),',
    replace: 'eventIds: [],',
  },
  {
    rule: 'a transaction is polled on for further transfers',
    file: 'src/domain/cadence/further-transfers.ts',
    find: 'if (!isOpen && ageMs >= AWAITED_MS)',
    replace: 'if (ageMs >= 0)',
  },
  {
    rule: 'an address has one form',
    file: 'src/domain/subjects/subject.ts',
    find: 'return `deposit-address:${foldParts(id)}` as SubjectId;',
    replace: 'return `deposit-address:${id}` as SubjectId;',
  },
  {
    rule: 'what is older than its start is history',
    file: 'src/domain/subjects/claim.ts',
    find: 'return claim.historyBefore !== null && updatedAt !== null && updatedAt < claim.historyBefore;',
    replace: 'return claim.historyBefore === -1;',
  },
  {
    rule: 'a requested reload synchronises',
    file: 'src/daemon/daemon.ts',
    find: 'if (syncs) await old.sync();',
    replace: '',
  },
  {
    rule: 'what waits is released once it is back',
    file: 'src/store/suspensions.ts',
    find: "if (stateOf(suspension) === 'back') settled.push(await this.#release(suspension));",
    replace: "if (stateOf(suspension) === 'back') continue;",
  },
  {
    rule: 'a cursor that died has the next sweep read back to back',
    file: 'src/queues/polls/hurried-sweeps.ts',
    find: "if (!isHurried(facts, nowMs)) return 'patient';",
    replace: "if (nowMs > 0) return 'patient';",
    unnoticed: 'a step has all pages read within seconds: test/long/cursor-lifetime.test.ts',
  },
  {
    rule: 'equal times are no evidence of an order',
    file: 'src/domain/cadence/wallet.ts',
    find: 'descends && new Set(times).size >= ENOUGH',
    replace: 'descends',
    unnoticed: 'new transfers are late, and not lost: test/long/wallet-orders.test.ts',
  },
];

const ROOT = join(import.meta.dirname, '../..');
const SEEDS = [2, 3, 4, 5];
const ACTS = 40;

/** Lives by some seeds on a copy with one line changed. Returns the first seed that does not add up, and why. */
async function lifeWith({ file, find, replace }: Damage): Promise<{ seed: number; problem: string } | null> {
  const copy = await mkdtemp(join(tmpdir(), 'intentwatch-damage-'));
  try {
    for (const part of ['src', 'test', 'package.json', 'tsconfig.json'])
      await cp(join(ROOT, part), join(copy, part), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const text = await readFile(join(copy, file), 'utf8');
    if (text.split(find).length !== 2) throw new Error(`${file} has not one ${find}`);
    await writeFile(
      join(copy, file),
      text.replace(find, () => replace),
    );
    for (const seed of SEEDS) {
      const args = ['--virtual', '--seed', String(seed), '--acts', String(ACTS)];
      const life = await Program.start(join(copy, 'test/chaos/operator.ts'), args);
      const { code } = await life.ending();
      const [, problem = 'it ended with an error'] = /^ {2}(?!\d\d-\d\d)(.*)$/m.exec(life.said()) ?? [];
      if (code !== 0) return { seed, problem };
    }
    return null;
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
    const found = await lifeWith(damage);
    const seen = found === null ? 'no' : `seed ${found.seed}`;
    process.stdout.write(`| ${rule} | ${seen} | ${found?.problem.slice(0, 160) ?? unnoticed ?? ''} |\n`);
    if (found === null && unnoticed === undefined) process.exitCode = 1;
  }
};
await Promise.all(Array.from({ length: availableParallelism() }, work));
