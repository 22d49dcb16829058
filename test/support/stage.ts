import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { Program } from './program.ts';
import { ReceiverProcess } from './receiver-process.ts';
import { RedisProcess } from './redis-process.ts';
import { SANDBOX_KEY, SandboxProcess } from './sandbox-process.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** The name of the one receiver in the configs of end-to-end tests. */
export const RECEIVER_NAME = 'backend';

/** The choices of such a config. Without `redisUrl`, the daemon has its embedded Redis in `dataDir`. */
export type StageConfig = {
  upstreamUrl: string;
  redisUrl?: string;
  dataDir?: string;
  /** Omitted: a free one. */
  port?: number;
  receiver: { url: string; secret: string };
  /** The event types that the receiver gets; omitted: the default. */
  receiverEvents?: string[];
  receiverTimeout?: string;
  others?: { name: string; url: string; secret: string }[];
  subscriptions: object[];
};

/** Flags of a sandbox beyond its defaults. Only announced transfers are born until its pace is set. */
export type SandboxFlags = { seed: number; timeScale: number; wallets: number };

/** The processes and folders of one end-to-end test. They are gone when the test is finished. */
export class Stage {
  readonly #onFinished: (cleanUp: () => Promise<void>) => unknown;

  /** Takes the `onTestFinished` of the test's context, so that tests can run side by side. */
  constructor(onTestFinished: (cleanUp: () => Promise<void>) => unknown) {
    this.#onFinished = onTestFinished;
  }

  async folder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-e2e-'));
    this.#onFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    return folder;
  }

  async program(file: string, args: readonly string[], env: Record<string, string> = {}): Promise<Program> {
    return this.command([process.execPath, file, ...args], env);
  }

  async command(command: readonly string[], env: Record<string, string> = {}): Promise<Program> {
    const program = await Program.run(command, env);
    this.#onFinished(async () => {
      program.send('SIGKILL');
      await program.ending();
    });
    return program;
  }

  async intentwatch(args: readonly string[], env: Record<string, string> = {}): Promise<Program> {
    return this.program(MAIN, args, env);
  }

  /** Starts a daemon and waits until everything in it runs. */
  async daemon(configFile: string, env: Record<string, string> = {}): Promise<Program> {
    const daemon = await this.intentwatch(['start', '--config', configFile], env);
    await daemon.line(/"msg":"daemon.started"/);
    return daemon;
  }

  async sandbox({ seed, timeScale, wallets }: SandboxFlags): Promise<SandboxProcess> {
    const flags = { port: 0, 'control-port': 0, 'transfers-per-second': 0, seed, wallets };
    const args = Object.entries({ ...flags, 'time-scale': timeScale }).map((flag) => `--${flag.join('=')}`);
    return SandboxProcess.of(await this.intentwatch(['sandbox', ...args]));
  }

  /** A receiver that answers 204 after `delayMs`, never answers, or answers 500. */
  async receiver(
    options: { mode?: 'answer' | 'hang' | 'fail'; delayMs?: number } = {},
  ): Promise<ReceiverProcess> {
    return ReceiverProcess.start(this.program.bind(this), options);
  }

  async redis(): Promise<RedisProcess> {
    const redis = await RedisProcess.create();
    this.#onFinished(() => redis.close());
    return redis;
  }

  /** Writes a config file into a folder of its own and returns its path. */
  async config({
    upstreamUrl,
    redisUrl,
    dataDir,
    port = 0,
    receiver,
    receiverEvents,
    receiverTimeout,
    others = [],
    subscriptions,
  }: StageConfig): Promise<string> {
    const file = join(await this.folder(), 'intentwatch.yaml');
    const sections = {
      upstream: {
        baseUrl: upstreamUrl,
        apiKey: SANDBOX_KEY,
        requestsPerSecond: 200,
        gatewayRequestsPerSecond: 50,
      },
      ...(redisUrl === undefined ? {} : { redis: { url: redisUrl } }),
      ...(dataDir === undefined ? {} : { dataDir }),
      server: { host: '127.0.0.1', port },
      receivers: [{ name: RECEIVER_NAME, url: receiver.url, secret: receiver.secret }, ...others].map(
        ({ name, url, secret }) => ({
          name,
          type: 'webhook',
          url,
          secrets: [secret],
          allowPrivateNetwork: true,
          allowInsecure: true,
          ...(receiverEvents === undefined ? {} : { events: receiverEvents }),
          ...(receiverTimeout === undefined ? {} : { timeout: receiverTimeout }),
        }),
      ),
      subscriptions,
    };
    await writeFile(file, stringify(sections));
    return file;
  }
}
