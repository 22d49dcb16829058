import { readdir, readFile, readlink } from 'node:fs/promises';

type Process = { pid: number; parent: number; group: number; cwd: string | null; name: string };

/** The processes of this machine, except ended ones that were not yet waited for. */
async function processes(): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid): Promise<Process | null> => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
      if (stat === null) return null;
      const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (state === 'Z') return null;
      const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
      const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => null);
      return { pid: Number(pid), parent: Number(parent), group: Number(group), cwd, name };
    }),
  );
  return found.filter((one) => one !== null);
}

/** The pids of all redis-servers that work in a folder. */
export async function redisServersIn(folder: string): Promise<number[]> {
  return (await processes())
    .filter(({ cwd, name }) => cwd === folder && name === 'redis-server')
    .map(({ pid }) => pid);
}

/** The pid of the guard of a redis-server, and of all its helpers. */
export async function guardOf(server: number): Promise<{ guard: number; helpers: number[] }> {
  const all = await processes();
  const guard = all.find(({ pid }) => pid === server)?.parent;
  if (guard === undefined) throw new Error(`no redis-server with pid ${server} runs`);
  const helpers = all.filter(({ group, pid }) => group === guard && pid !== guard && pid !== server);
  return { guard, helpers: helpers.map(({ pid }) => pid) };
}
