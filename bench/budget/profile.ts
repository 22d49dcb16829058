import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { flows } from '../../scripts/architecture.ts';

const PROFILE = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string() }),
      children: z.array(z.number()).optional(),
    }),
  ),
  startTime: z.number(),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});

/** A span of the monotonic clock, ms. */
export type Span = { fromMs: number; toMs: number };

/** The clock of profiles, ms. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

const REST = 'Node itself';
const OUTSIDE = new Map([
  ['(garbage collector)', 'garbage collection'],
  ['(program)', REST],
]);

/** Packages and folders whose work belongs to no step. The first that matches counts. */
const PLACES: readonly [pattern: RegExp, name: string][] = [
  [/node_modules\/bullmq\/|node_modules\/msgpackr\//, 'BullMQ'],
  [/node_modules\/ioredis\/|\/src\/store\/(?:commands|connection)\.ts/, 'connections to Redis'],
  [/node_modules\/undici\/|\/src\/(?:upstream\/http|network)\//, 'HTTP connections'],
  [
    /\/src\/(?:metrics\/|log\.ts|signals\.ts|redact\.ts)|node_modules\/(?:pino|prom-client)\//,
    'metrics and logs',
  ],
  [/\/src\/domain\/json\.ts/, 'JSON'],
  [/node_modules\/zod\//, 'checks of shapes'],
  [/\/src\//, 'other files of the program'],
];

/**
 * Reads the CPU profile in a folder: the time (ms) that each step had within each span. A step is a file of the flow from poll
 * to webhook, the innermost one on the stack; what belongs to none is counted by its package or kind.
 */
export async function readProfile(folder: string, spans: readonly Span[]): Promise<Map<string, number>[]> {
  const [file = ''] = (await readdir(folder)).filter((name) => name.endsWith('.cpuprofile'));
  const profile = PROFILE.parse(JSON.parse(await readFile(join(folder, file), 'utf8')));
  const steps = stepOfEachNode(profile);
  const sums = spans.map(() => new Map<string, number>());
  let atMs = profile.startTime / 1_000;
  for (const [index, id] of profile.samples.entries()) {
    const tookMs = (profile.timeDeltas[index] ?? 0) / 1_000;
    atMs += tookMs;
    const step = steps.get(id) ?? null;
    if (step === null) continue;
    for (const [at, { fromMs, toMs }] of spans.entries()) {
      if (atMs >= fromMs && atMs < toMs) sums[at]?.set(step, (sums[at].get(step) ?? 0) + tookMs);
    }
  }
  return sums;
}

/** The step of each node of a profile; null where the process is idle. */
function stepOfEachNode({ nodes }: z.infer<typeof PROFILE>): Map<number, string | null> {
  const files = filesOfFlow();
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  return new Map(
    nodes.map((node) => {
      const { functionName } = node.callFrame;
      if (functionName === '(idle)') return [node.id, null];
      const outside = OUTSIDE.get(functionName);
      if (outside !== undefined) return [node.id, outside];
      const urls: string[] = [];
      for (let id: number | undefined = node.id; id !== undefined; id = parents.get(id)) {
        urls.push(byId.get(id)?.callFrame.url ?? '');
      }
      return [node.id, stepOf(urls, files)];
    }),
  );
}

/** The step of a stack, given from its innermost file outwards. */
function stepOf(urls: readonly string[], files: ReadonlySet<string>): string {
  for (const url of urls) {
    const [, path = ''] = /\/(src\/[^?]+)$/.exec(url) ?? [];
    if (files.has(path)) return path;
  }
  for (const url of urls) {
    const place = PLACES.find(([pattern]) => pattern.test(url));
    if (place !== undefined) return place[1];
  }
  return REST;
}

function filesOfFlow(): ReadonlySet<string> {
  const flow = flows().find(({ title }) => title === 'Poll to webhook');
  return new Set(flow?.steps.flat().map(({ path }) => path));
}
