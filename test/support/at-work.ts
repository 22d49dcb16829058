import { Sandbox } from '../../sandbox/sandbox.ts';
import { eventually } from './eventually.ts';
import { Hook } from './hook.ts';
import type { Program } from './program.ts';
import type { RedisProcess } from './redis-process.ts';
import { RECEIVER_NAME, Stage } from './stage.ts';

/** The daemon's wait for its receiver; the tests end sooner. */
const RECEIVER_TIMEOUT = '5m';

export const RECEIVER_SECRET = `whsec_${'A'.repeat(32)}`;

/** Starts a daemon in a process of its own; resolves after its first webhook, to which `answer` gives the status. */
export async function atWork(
  onTestFinished: (cleanUp: () => Promise<void>) => unknown,
  answer: () => number | null = () => 204,
): Promise<{ daemon: Program; redis: RedisProcess }> {
  const stage = new Stage(onTestFinished);
  const sandbox = new Sandbox({ seed: 3, timeScale: 20, wallets: 2, transfersPerSecond: 3 });
  const hook = new Hook(answer);
  const [redis] = await Promise.all([stage.redis(), sandbox.start(), hook.start()]);
  onTestFinished(() => sandbox.close());
  onTestFinished(() => hook.close());
  const { wallets, quotes } = sandbox.subjects();
  const file = await stage.config({
    upstreamUrl: sandbox.url,
    redisUrl: redis.url,
    receiver: { url: hook.url, secret: RECEIVER_SECRET },
    receiverTimeout: RECEIVER_TIMEOUT,
    subscriptions: [{ name: 'treasury', wallets, quotes, receivers: [RECEIVER_NAME] }],
  });
  const daemon = await stage.daemon(file);
  await eventually('a webhook', () => hook.came.length > 0);
  return { daemon, redis };
}
