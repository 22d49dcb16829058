import { DnsServer } from './dns-server.ts';
import { Program } from './program.ts';

/**
 * What this machine lacks for a process that has a `resolv.conf` of its own, with a name server of ours at `address`; null
 * where it lacks nothing.
 */
export async function missingForOwnNames(address: string): Promise<string | null> {
  const program = await Program.run([...UNSHARED, 'mount --bind /dev/null /etc/resolv.conf']).catch(
    () => null,
  );
  if (program === null || (await program.ending()).code !== 0) return 'the right to unshare mounts';
  const server = new DnsServer(() => 'nothing');
  try {
    await server.start({ address, port: 53 });
    await server.close();
    return null;
  } catch {
    return `port 53 of ${address}`;
  }
}

const UNSHARED = ['unshare', '--mount', 'sh', '-c'];

/** Starts a command for which the file `resolvConf` stands in the place of the system's. */
export async function runWithOwnNames(resolvConf: string, command: readonly string[]): Promise<Program> {
  return Program.run([
    ...UNSHARED,
    'mount --bind "$0" /etc/resolv.conf && exec "$@"',
    resolvConf,
    ...command,
  ]);
}
