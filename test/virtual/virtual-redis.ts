import type { Redis } from 'ioredis';
import { connect, disconnect } from '../../src/store/connection.ts';
import { RedisProcess } from '../support/redis-process.ts';
import type { VirtualTime } from './virtual-time.ts';

/** All keys of a Redis at a time: name, dump, and expiry (Unix ms; -1 for never). */
export type Copy = readonly { key: string; value: Buffer; expiresMs: number }[];

/** A Redis whose clock is virtual, and that can be set back as by a dump or by a replica that was behind. */
export class VirtualRedis {
  readonly #process: RedisProcess;
  readonly client: Redis;

  private constructor(process: RedisProcess) {
    this.#process = process;
    this.client = connect({ kind: 'server', url: process.url }) as Redis;
  }

  static async start(time: VirtualTime): Promise<VirtualRedis> {
    return new VirtualRedis(await RedisProcess.create({ durable: false, env: time.env }));
  }

  get url(): string {
    return this.#process.url;
  }

  async copy(): Promise<Copy> {
    const keys = await this.client.keys('*');
    return Promise.all(
      keys.map(async (key) => {
        const [value, expiresMs] = await Promise.all([
          this.client.dumpBuffer(key),
          this.client.pexpiretime(key),
        ]);
        return { key, value: value ?? Buffer.alloc(0), expiresMs: Number(expiresMs) };
      }),
    );
  }

  async restore(copy: Copy): Promise<void> {
    const restoring = this.client.multi().flushall();
    for (const { key, value, expiresMs } of copy) {
      if (expiresMs > 0) restoring.restore(key, expiresMs, value, 'ABSTTL');
      else restoring.restore(key, 0, value);
    }
    const replies = (await restoring.exec()) ?? [];
    for (const [error] of replies) if (error !== null) throw error;
  }

  async close(): Promise<void> {
    await disconnect(this.client);
    await this.#process.close();
  }
}
