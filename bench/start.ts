import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { Program } from '../test/support/program.ts';
import { shipped } from './deliveries/shipped.ts';
import { median, printTargets, type Target } from './detection/targets.ts';
import { cpuMsOf } from './polls/cpu.ts';

const CLONE = join(import.meta.dirname, '..');
const BARE = join(import.meta.dirname, 'start/bare.mjs');
const USAGE = join(import.meta.dirname, 'start/usage.mjs');
const UPSTREAM = join(import.meta.dirname, 'memory/upstream.ts');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const TOKEN = 'bench-admin-token-0123456789abcdef';
const WALLET = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const MB = 1_000_000;

const SIZES = [1, 10_000, 100_000];
const ROUNDS = 2;
const COMMAND_RUNS = 5;
const SETTLE_SECONDS = 20;
const IDLE_SECONDS = 60;

const MOST = {
  commandSeconds: 0.3,
  startSeconds: 0.7,
  idlePercent: 1,
  memoryMb: new Map([
    [1, 110],
    [10_000, 150],
    [100_000, 250],
  ]),
};

const OPTIONS = {
  clone: { type: 'string', default: CLONE },
  sizes: { type: 'string' },
  rounds: { type: 'string' },
  idle: { type: 'string' },
} as const;

/** One run of a command: seconds, CPU of all its processes in ms, and the peak of the largest in MB. */
type Run = { seconds: number; cpuMs: number; peakMb: number };

/**
 * One run of the daemon. Memory is its share (PSS), with what is of the heap of V8, by space, and outside of it; `bareMb` is
 * that of the baseline, which runs beside it.
 */
type Life = {
  startSeconds: number;
  startCpuMs: number;
  memoryMb: number;
  spacesMb: Map<string, number>;
  bareMb: number;
  idlePercent: number;
};

/** Spaces of V8's heap that a size of its own is printed for: young objects, old ones, and large ones of both ages. */
const SPACES = ['new', 'old', 'large_object', 'code'];

/**
 * Measures the start and the idle state of the shipped program: `ls` and `--version` of an installed clone, the time to
 * `/readyz` with the embedded Redis, memory beside one wallet and many subjects, and the CPU of a daemon that sees no changes.
 * The baseline is a process with bullmq, ioredis and undici loaded. `--clone` measures another clone, such as an older one.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const clone = resolve(values.clone);
  const sizes = values.sizes?.split(',').map(Number) ?? SIZES;
  const [rounds, idleSeconds] = [Number(values.rounds ?? ROUNDS), Number(values.idle ?? IDLE_SECONDS)];
  const upstream = await Program.start(UPSTREAM, []);
  const [, port = ''] = await upstream.line(/listening on (\d+)/);
  const lives = new Map<number, Life[]>(sizes.map((size) => [size, []]));
  const commands = new Map<string, Run[]>([
    ['--version', []],
    ['ls', []],
    ['baseline', []],
  ]);
  try {
    for (let round = 0; round < rounds; round++) {
      for (const size of sizes) {
        const stage = await Stage.create(clone, { baseUrl: `http://127.0.0.1:${port}`, size });
        try {
          lives.get(size)?.push(await stage.live(size === 1 ? idleSeconds : 0));
          if (size !== sizes[0]) continue;
          for (let at = 0; at < COMMAND_RUNS; at++) {
            commands.get('--version')?.push(await stage.command(['./intentwatch', '--version']));
            commands.get('ls')?.push(await stage.command(['./intentwatch', 'ls', '--url', stage.url]));
            commands.get('baseline')?.push(await stage.command([process.execPath, BARE, 'once']));
          }
        } finally {
          await stage.close();
        }
      }
    }
  } finally {
    await upstream.end('SIGKILL');
  }
  return report(commands, lives) ? 0 : 1;
}

function report(commands: ReadonlyMap<string, Run[]>, lives: ReadonlyMap<number, Life[]>): boolean {
  const targets: Target[] = [];
  const bare = commands.get('baseline') ?? [];
  for (const [name, runs] of commands) {
    const [seconds, cpuMs, peakMb] = [
      median(runs.map((one) => one.seconds)),
      median(runs.map((one) => one.cpuMs)),
      median(runs.map((one) => one.peakMb)),
    ];
    const ratio = cpuMs / median(bare.map((one) => one.cpuMs));
    console.log(
      `${name.padEnd(12)} ${seconds.toFixed(2)} s, CPU ${cpuMs.toFixed(0)} ms (${ratio.toFixed(2)} of the baseline), at most ${peakMb.toFixed(0)} MB`,
    );
    if (name !== 'baseline')
      targets.push({ what: `${name}: seconds`, found: seconds, most: MOST.commandSeconds });
  }
  for (const [size, runs] of lives) {
    const memoryMb = median(runs.map((one) => one.memoryMb));
    const ratio = memoryMb / median(runs.map((one) => one.bareMb));
    const [startSeconds, startCpuMs] = [
      median(runs.map((one) => one.startSeconds)),
      median(runs.map((one) => one.startCpuMs)),
    ];
    const name = size === 1 ? 'one wallet' : `${size} subjects`;
    console.log(
      `${name}: ${memoryMb.toFixed(0)} MB (${ratio.toFixed(2)} of the baseline); to readyz ${startSeconds.toFixed(2)} s, CPU ${startCpuMs.toFixed(0)} ms`,
    );
    const most = MOST.memoryMb.get(size);
    if (most !== undefined) targets.push({ what: `${name}: MB of the process`, found: memoryMb, most });
    for (const space of runs[0]?.spacesMb.keys() ?? []) {
      const found = median(runs.map(({ spacesMb }) => spacesMb.get(space) ?? 0));
      targets.push({ what: `${name}: MB of these ${space}`, found });
    }
    if (size !== 1) continue;
    targets.push(
      { what: 'start to readyz: seconds', found: startSeconds, most: MOST.startSeconds },
      {
        what: 'idle CPU, % of one core',
        found: median(runs.map((one) => one.idlePercent)),
        most: MOST.idlePercent,
      },
    );
  }
  return printTargets(targets);
}

/** A daemon of a clone on a folder of its own, with one wallet or many transfers that are under way. */
class Stage {
  readonly url: string;
  readonly #clone: string;
  readonly #folder: string;

  private constructor(clone: string, { folder, url }: { folder: string; url: string }) {
    this.#clone = clone;
    this.#folder = folder;
    this.url = url;
  }

  static async create(clone: string, { baseUrl, size }: { baseUrl: string; size: number }): Promise<Stage> {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
    const port = await freePort();
    const subjects =
      size === 1
        ? { wallets: [WALLET] }
        : { intents: Array.from({ length: size }, (_, at) => `0x${at.toString(16).padStart(64, '0')}`) };
    const config = {
      upstream: { baseUrl, apiKey: 'sandbox-key', ...(size === 1 ? {} : { requestsPerSecond: 500 }) },
      dataDir: join(folder, 'data'),
      server: { host: '127.0.0.1', port, token: TOKEN },
      receivers: [{ name: 'backend', type: 'webhook', url: 'https://example.com/', secrets: [SECRET] }],
      subscriptions: [{ name: 'all', ...subjects, receivers: [] }],
    };
    await writeFile(join(folder, 'intentwatch.yaml'), stringify(config));
    return new Stage(clone, { folder, url: `http://127.0.0.1:${port}` });
  }

  /** Runs the daemon twice: the second start finds the code that the first has compiled, as every later one does. */
  async live(idleSeconds: number): Promise<Life> {
    await this.#end(await this.#start());
    const startMs = performance.now();
    const program = await this.#start();
    const [startSeconds, startCpuMs] = [(performance.now() - startMs) / 1_000, await cpuMsOf(program.pid)];
    const bare = await Program.start(BARE, []);
    await bare.line(/ready/);
    await wait(1_000 * SETTLE_SECONDS);
    const beforeMs = await cpuMsOf(program.pid);
    await wait(1_000 * idleSeconds);
    const idlePercent = ((await cpuMsOf(program.pid)) - beforeMs) / 10 / idleSeconds;
    const [memoryMb, bareMb] = [await shareOf(program.pid), await shareOf(bare.pid)];
    const spacesMb = await spacesOf(this.url, memoryMb);
    await bare.end('SIGKILL');
    this.#running = program;
    return { startSeconds, startCpuMs, memoryMb, spacesMb, bareMb, idlePercent };
  }

  #running: Program | null = null;

  async #start(): Promise<Program> {
    const { main, env } = shipped(this.#clone);
    const args = ['start', '--config', join(this.#folder, 'intentwatch.yaml'), '--log-level', 'error'];
    const program = await Program.start(main, args, env);
    while (!(await isReady(this.url))) await wait(5);
    return program;
  }

  async #end(program: Program): Promise<void> {
    await program.end('SIGTERM');
  }

  async command([command = '', ...args]: readonly string[]): Promise<Run> {
    const file = join(this.#folder, 'usage');
    const startMs = performance.now();
    const program = await Program.run([resolve(this.#clone, command), ...args], {
      NODE_OPTIONS: `--import=${USAGE}`,
      USAGE_FILE: file,
      INTENTWATCH_TOKEN: TOKEN,
    });
    const { code } = await program.ending();
    const seconds = (performance.now() - startMs) / 1_000;
    if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${program.output()}`);
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    await rm(file);
    const used = lines.map((line) => line.split(' ').map(Number));
    const cpuMs = used.reduce((sum, [ms = 0]) => sum + ms, 0);
    return { seconds, cpuMs, peakMb: Math.max(...used.map(([, kb = 0]) => (kb * 1_024) / MB)) };
  }

  async close(): Promise<void> {
    if (this.#running !== null) await this.#end(this.#running);
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function isReady(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/readyz`).catch(() => null);
  await answer?.arrayBuffer();
  return answer?.ok === true;
}

/** Proportional share of memory of a process, in MB: pages that processes share are divided among them. */
async function shareOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return (Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1]) * 1_024) / MB;
}

/** Divides the memory of a daemon (MB) by the spaces of its heap, as the daemon measures them. */
async function spacesOf(url: string, memoryMb: number): Promise<Map<string, number>> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const text = await answer.text();
  const sizeOf = (space: string): number => {
    const [, bytes] =
      new RegExp(`^nodejs_heap_space_size_total_bytes\\{space="${space}"\\} (\\S+)`, 'm').exec(text) ?? [];
    return Number(bytes) / MB;
  };
  const spaces = new Map(
    SPACES.map((space) => [`in the ${space.replaceAll('_', ' ')} space`, sizeOf(space)]),
  );
  const heapMb = Number(/^nodejs_heap_size_total_bytes (\S+)/m.exec(text)?.[1]) / MB;
  return spaces.set('outside the heap', memoryMb - heapMb);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
