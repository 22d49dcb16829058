import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { stringify } from 'yaml';
import { testPrefix } from './daemon.ts';
import { Program } from './program.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

/** The user's choices in a config; all the rest has its default. */
export type ShippedConfig = {
  baseUrl: string;
  requestsPerSecond?: number;
  redisUrl?: string;
  receiver?: { url: string; events?: string[] };
  /** Receivers beside the one named `backend`. */
  receivers?: object[];
  subscription: object;
  more?: object;
};

/** The program as a user runs it: in a process of its own, with the default settings. */
export class ShippedDaemon {
  readonly #file: string;
  readonly #folder: string;
  #program: Program | null = null;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#file = join(folder, 'intentwatch.yaml');
  }

  /** Writes the config. `onFinished` takes the clean-up at the end of the test. */
  static async of(
    config: ShippedConfig,
    onFinished: (cleanUp: () => Promise<void>) => unknown,
  ): Promise<ShippedDaemon> {
    const daemon = new ShippedDaemon(await mkdtemp(join(tmpdir(), 'intentwatch-shipped-')));
    const { baseUrl, requestsPerSecond, receiver, subscription, more } = config;
    await writeFile(
      daemon.#file,
      stringify({
        upstream: {
          baseUrl,
          apiKey: 'sandbox-key',
          ...(requestsPerSecond === undefined ? {} : { requestsPerSecond }),
        },
        redis: { url: config.redisUrl ?? inject('redisUrl'), prefix: testPrefix() },
        server: { host: '127.0.0.1', port: 0 },
        receivers: [
          {
            name: 'backend',
            type: 'webhook',
            url: receiver?.url ?? 'http://127.0.0.1:9/',
            secrets: [SECRET],
            allowPrivateNetwork: true,
            allowInsecure: true,
            ...(receiver?.events === undefined ? {} : { events: receiver.events }),
          },
          ...(config.receivers ?? []),
        ],
        subscriptions: [{ name: 'all', receivers: ['backend'], ...subscription }],
        ...more,
      }),
    );
    onFinished(async () => {
      await daemon.kill();
      await rm(daemon.#folder, { recursive: true, force: true, maxRetries: 5 });
    });
    return daemon;
  }

  /** Starts the program, or starts it again; resolves when it logs that it has started. Returns its URL. */
  async start(): Promise<string> {
    const program = await Program.start(MAIN, ['start', '--config', this.#file]);
    this.#program = program;
    const [, url = ''] = await program.line(/"url":"(http[^"]+)".*"msg":"server.listening"/);
    await program.line(/"msg":"daemon.started"/);
    return url;
  }

  get lines(): readonly string[] {
    return this.#program?.stdout ?? [];
  }

  async kill(): Promise<void> {
    await this.#program?.end('SIGKILL');
    this.#program = null;
  }
}
