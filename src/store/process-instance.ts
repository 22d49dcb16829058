import { readFile, readlink } from 'node:fs/promises';
import { z } from 'zod';
import { codeOf } from '../errors.ts';

/**
 * The instance of a process, by which another process can prove that it has ended. `connection` is the name of its connections
 * in CLIENT LIST; null where Redis does not list them. `system` is null where /proc does not show it: on macOS, or where /proc
 * belongs to another pid namespace.
 */
const INSTANCE = z.object({
  connection: z.string().nullable(),
  system: z
    .object({
      /** Random id of this boot of the machine. */
      boot: z.string(),
      /** Inode of the pid namespace. A namespace that has it later began after this one, and all its processes, had ended. */
      namespace: z.string(),
      pid: z.number().int().positive(),
      /** Time of its start in ticks since the boot: a later process with the same pid has another one. */
      started: z.string(),
    })
    .nullable(),
});

export type ProcessInstance = z.infer<typeof INSTANCE>;

type SystemProcess = NonNullable<ProcessInstance['system']>;

/** Parses a stored instance. Returns null for any other text, such as the "" of an earlier program. */
export function parseInstance(text: string): ProcessInstance | null {
  try {
    return INSTANCE.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Reads what the system shows of this process. Returns null where another process could not find it by that. */
export async function readSystemProcess(): Promise<SystemProcess | null> {
  try {
    const [boot, namespace, self, stat] = await Promise.all([
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      readlink('/proc/self/ns/pid'),
      readlink('/proc/self'),
      readStat(process.pid),
    ]);
    if (stat === null || self !== String(process.pid)) return null;
    return { boot: boot.trim(), namespace, pid: process.pid, started: stat.started };
  } catch {
    return null;
  }
}

/**
 * Determines whether a process has ended, as far as `own`, a process of the same boot and pid namespace, can see it: true or
 * false, and null elsewhere. A stopped process runs; a zombie has ended.
 */
export async function hasEnded(
  other: SystemProcess | null,
  own: SystemProcess | null,
): Promise<boolean | null> {
  if (other === null || own === null) return null;
  if (other.boot !== own.boot || other.namespace !== own.namespace) return null;
  // A mount of /proc may hide the processes of other users; this request does not.
  if (!exists(other.pid)) return true;
  const stat = await readStat(other.pid).catch(() => null);
  if (stat === null) return !exists(other.pid);
  return stat.started !== other.started || stat.state === 'Z' || stat.state === 'X';
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}

/** Reads the state and the start time of a process: fields 3 and 22, behind its name, which may contain anything. */
async function readStat(pid: number): Promise<{ state: string; started: string } | null> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields[0], fields[19]];
  return state === undefined || started === undefined ? null : { state, started };
}
