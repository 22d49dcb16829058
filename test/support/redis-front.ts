import { createConnection, createServer, type Socket } from 'node:net';
import type { RedisProcess } from './redis-process.ts';

/** An address in front of Redis that can be switched to another server, as that of a failover does. */
export async function redisFront(first: RedisProcess): Promise<{
  url: string;
  lead: (to: RedisProcess) => void;
  close: () => Promise<unknown>;
}> {
  const sockets = new Set<Socket>();
  let port = Number(new URL(first.url).port);
  const front = createServer((near) => {
    const far = createConnection({ host: '127.0.0.1', port });
    for (const [one, next] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        sockets.delete(one);
        next.destroy();
      });
      one.pipe(next);
    }
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const address = front.address();
  if (address === null || typeof address === 'string') throw new Error('found no port');
  return {
    url: `redis://127.0.0.1:${address.port}`,
    lead: (to) => {
      port = Number(new URL(to.url).port);
      for (const socket of sockets) socket.destroy();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => front.close(resolve));
    },
  };
}
