import { DnsServer } from './dns-server.ts';
import { Program } from './program.ts';

/** The parts that a process with its own `resolv.conf` and our name server at `address` needs and this machine lacks, or null. */
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

/** Starts a command that sees the file `resolvConf` in place of the system's. */
export async function runWithOwnNames(resolvConf: string, command: readonly string[]): Promise<Program> {
  return Program.run([
    ...UNSHARED,
    'mount --bind "$0" /etc/resolv.conf && exec "$@"',
    resolvConf,
    ...command,
  ]);
}
