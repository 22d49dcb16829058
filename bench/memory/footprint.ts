import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import type { RedisClient } from '../../src/store/commands.ts';

/**
 * Memory of a Redis: its data set (with what connections, scripts and tables take), and the keys of each kind with their number
 * and their bytes: values, names and entries in the table of keys.
 */
export type Footprint = { bytes: number; kinds: Map<string, { keys: number; bytes: number }> };

/** The bytes of all keys. */
export function bytesOfKeys({ kinds }: Footprint): number {
  return [...kinds.values()].reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Measures a Redis. Kinds are names of keys without prefix and ids: `subject`, `q deliver-backend`, … */
export async function footprintOf(redis: RedisClient): Promise<Footprint> {
  if (!(redis instanceof Redis)) throw new Error('expected one server');
  const kinds: Footprint['kinds'] = new Map();
  for await (const keys of redis.scanStream({ count: 1_000 })) {
    const pipeline = redis.pipeline();
    for (const key of keys) pipeline.memory('USAGE', key, 'SAMPLES', 0);
    const sizes = (await pipeline.exec()) ?? [];
    for (const [at, key] of keys.entries()) {
      const kind = kindOf(key);
      const sum = kinds.get(kind) ?? { keys: 0, bytes: 0 };
      kinds.set(kind, { keys: sum.keys + 1, bytes: sum.bytes + Number(sizes[at]?.[1] ?? 0) });
    }
  }
  const info = await redis.info('memory');
  return { bytes: Number(/used_memory_dataset:(\d+)/.exec(info)?.[1]), kinds };
}

function kindOf(key: string): string {
  const [, first = '', second = ''] = key.split(':');
  if (first !== 'q' && first !== 'plan') return first;
  const last = key.split(':').at(-1) ?? '';
  const isJob =
    first === 'q' &&
    !/^(id|meta|wait|active|delayed|completed|failed|events|stalled-check|marker)$/.test(last);
  return `${first} ${second} ${isJob ? 'jobs' : last}`;
}

/** Memory of a process now, and its peak, in bytes. */
export async function memoryOf(pid: number): Promise<{ now: number; most: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const bytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1_024;
  return { now: bytes('VmRSS'), most: bytes('VmHWM') };
}
