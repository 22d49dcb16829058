/**
 * A row of the figures: its benchmark and its flags, the number of rounds, and whether the benchmark runs its baseline by
 * itself (`--side bare`) and takes a number of rounds.
 */
export type Row = {
  name: string;
  bench: string;
  args: readonly string[];
  rounds: number;
  flags: 'sides' | 'rounds' | 'none';
};

/** Rounds of the rows of latency, burst, backlog and CPU, and of the others. */
const MANY = 5;
const FEW = 2;

const row = (bench: string, rounds: number, flags: Row['flags'], args: readonly string[] = []): Row => ({
  name: bench,
  bench,
  args,
  rounds,
  flags,
});

/** Rows in the order in which they are measured. */
export const ROWS: readonly Row[] = [
  row('latency', MANY, 'sides'),
  { ...row('latency', 1, 'sides', ['--seconds=60', '--rates=200,500,1000']), name: 'latency-minute' },
  row('burst', MANY, 'sides'),
  row('backlog', MANY, 'sides'),
  row('polls', MANY, 'sides'),
  row('commands', FEW, 'sides'),
  row('idle', FEW, 'sides'),
  row('fairness', FEW, 'rounds'),
  row('restarts', FEW, 'rounds'),
  row('start', FEW, 'none'),
  row('memory', FEW, 'none', ['--minutes=0']),
  row('footprint', FEW, 'none'),
  { ...row('detection', FEW, 'none', ['--part=quiet']), name: 'births' },
  row('budget', 1, 'none'),
  // The whole table: each row has the cells of a number of wallets and a budget, and all runs are made with the true times, too.
  ...['1', '5', '20', '40', '200', '5000'].flatMap((wallets) =>
    ['1', '5', '10', '50'].map((budget) => ({
      ...row('cadence', 1, 'none', [`--only=^${wallets}/${budget} `, '--truth-seeds=99']),
      name: `cadence-${wallets}-${budget}`,
    })),
  ),
];
