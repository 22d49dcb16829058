import { availableParallelism } from 'node:os';
import { pick } from '../../sandbox/world/random.ts';
import { Program } from '../support/program.ts';
import { ACTS } from './acts.ts';
import { Life } from './life.ts';
import type { VirtualAccount } from './virtual-account.ts';

/** The acts of a life: a number of drawn ones, or their names in order. */
export type Acts = number | readonly string[];

async function live(seed: number, acts: Acts, writeLine: (line: string) => void): Promise<VirtualAccount> {
  const life = await Life.begin(seed);
  const report = (what: string): void =>
    writeLine(`  ${new Date(life.time.nowMs).toISOString().slice(5, 23)} ${what}`);
  try {
    const names = Object.entries(ACTS).flatMap(([name, { weight }]) => Array<string>(weight).fill(name));
    await life.pass(20_000, 2);
    const count = typeof acts === 'number' ? acts : acts.length;
    for (let done = 0; done < count; done += 1) {
      const name = typeof acts === 'number' ? pick(life.random, names) : (acts[done] ?? '');
      const act = ACTS[name]?.act;
      if (act === undefined) throw new Error(`no act ${name}`);
      report(name);
      await act(life);
    }
    report('everything is put in order');
    return await life.settleUp();
  } finally {
    await life.close();
  }
}

/** Lives one life in virtual time, and reports its result. Returns true when it adds up. */
export async function liveVirtually(
  seed: number,
  acts: Acts,
  writeLine: (line: string) => void,
): Promise<boolean> {
  writeLine(`seed ${seed}, ${typeof acts === 'number' ? acts : acts.length} acts in virtual time`);
  const { changes, shown, matched, delivered, suspended, events, closedDays, excused, problems } = await live(
    seed,
    acts,
    writeLine,
  );
  for (const problem of problems.slice(0, 30)) writeLine(`  ${problem}`);
  const counts = `${changes} changes, ${shown} shown, ${matched} matched, ${delivered} delivered (${suspended} suspended), ${events} events, ${closedDays} closed days`;
  const reasons = Object.entries(excused).map(([reason, count]) => `${count} ${reason}`);
  const sum = problems.length === 0 ? 'it all adds up.' : `${problems.length} problems`;
  writeLine(`seed ${seed}: ${counts}; ${reasons.join(', ')}: ${sum}`);
  return problems.length === 0;
}

/** Lives many lives, each in a process of its own, one per core at a time. Returns true when all add up. */
export async function liveMany(
  { first, seeds, acts }: { first: number; seeds: number; acts: number },
  writeLine: (line: string) => void,
): Promise<boolean> {
  const program = process.argv[1] ?? '';
  const open = Array.from({ length: seeds }, (_, index) => first + index);
  const failed: number[] = [];
  const work = async (): Promise<void> => {
    for (let seed = open.shift(); seed !== undefined; seed = open.shift()) {
      const args = ['--virtual', '--seed', String(seed), '--acts', String(acts)];
      const life = await Program.start(program, args);
      const { code } = await life.ending();
      if (code === 0) writeLine(/^seed \d+: .*$/m.exec(life.output())?.[0] ?? '');
      else {
        failed.push(seed);
        writeLine(life.output());
      }
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  writeLine(
    failed.length === 0
      ? `${seeds} lives: it all adds up.`
      : `seeds that do not add up: ${failed.sort((a, b) => a - b).join(', ')}`,
  );
  return failed.length === 0;
}
