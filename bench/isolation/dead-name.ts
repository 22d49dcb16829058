import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DnsServer } from '../../test/support/dns-server.ts';
import { Program } from '../../test/support/program.ts';

/** Runs a command with our `resolv.conf` in place of the system's. */
const WITH_RESOLV_CONF = [
  ...['unshare', '--mount', 'sh', '-c'],
  'mount --bind "$0" /etc/resolv.conf && exec "$@"',
] as const;

/** A name server that never answers, for programs that run with it. */
export class DeadNameServer {
  readonly #names: DnsServer;
  readonly #folder: string;

  private constructor(names: DnsServer, folder: string) {
    this.#names = names;
    this.#folder = folder;
  }

  /** Null where a program cannot have a `resolv.conf` of its own. */
  static async create(): Promise<DeadNameServer | null> {
    const names = new DnsServer(() => 'nothing');
    await names.start();
    const server = new DeadNameServer(names, await mkdtemp(join(tmpdir(), 'intentwatch-bench-')));
    await writeFile(server.#resolvConf, `nameserver ${names.nameServer}\n`);
    const probe = await server.run(['true']).catch(() => null);
    if (probe !== null && (await probe.ending()).code === 0) return server;
    await server.close();
    return null;
  }

  get #resolvConf(): string {
    return join(this.#folder, 'resolv.conf');
  }

  get requests(): number {
    return this.#names.requests.length;
  }

  async run(command: readonly string[]): Promise<Program> {
    return Program.run([...WITH_RESOLV_CONF, this.#resolvConf, ...command]);
  }

  async close(): Promise<void> {
    await this.#names.close();
    await rm(this.#folder, { recursive: true, maxRetries: 5 });
  }
}
