import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection.ts';
import { opening } from '../support/opening.ts';
import { RedisProcess } from '../support/redis-process.ts';

const { later } = opening();

test('a connection outlives a server that closes it and comes back', async () => {
  const server = await RedisProcess.create();
  later(() => server.close());
  const errors: unknown[] = [];
  const note = (error: unknown): void => void errors.push(error);
  process.on('uncaughtException', note);
  later(async () => void process.off('uncaughtException', note));
  const redis = connect({ kind: 'server', url: server.url });
  later(async () => redis.disconnect());
  await redis.ping();
  await server.stop();
  await server.start();
  expect(await redis.ping()).toBe('PONG');
  expect(errors).toEqual([]);
});
