import type { TestProject } from 'vitest/node';
import { RedisProcess } from './redis-process.ts';

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
  }
}

/** Starts one private Redis for the whole run; each test takes a prefix of its own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await RedisProcess.create();
  project.provide('redisUrl', server.url);
  return async () => server.close();
}
