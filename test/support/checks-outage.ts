import { expect, inject } from 'vitest';
import { connect } from '../../src/store/connection.ts';
import type { ChecksStage } from './checks-stage.ts';
import { eventually } from './eventually.ts';
import type { RpcNodes } from './rpc-nodes.ts';

/** Statements so old that a check which waits for its age waits 15 minutes. */
export const OLD = { agoMs: 1_200_000 };

/** Interval of probing a failed endpoint, and of reads of a final head that checks wait for. */
export const PROBE_MS = 10_000;

export const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

/**
 * Takes all nodes of a chain down while many checks wait, for longer than a process lives, and brings them back. They are
 * probed meanwhile. Then two processes read each check once, within the budget of each.
 */
export async function underOutage({
  stage,
  nodes,
  checks: count,
  requestsPerSecond,
}: {
  stage: ChecksStage;
  nodes: RpcNodes;
  checks: number;
  requestsPerSecond: number;
}): Promise<void> {
  await nodes.start({ requestsPerSecond });
  nodes.isDown = true;
  await stage.state(upTo(count), OLD);
  const first = stage.start();
  const waiting = () => stage.waitingFor('own', 'failed');
  await eventually('all wait for the endpoint', async () => (await waiting()) === count);
  // The waits are stored in Redis: other processes go on.
  await first.close();
  const other = connect({ kind: 'server', url: inject('redisUrl') });
  const verifiers = [stage.start(), stage.start(other)];
  const [failing, failingMs] = [nodes.seen.length, performance.now()];
  for (const times of upTo(5)) {
    const before = nodes.seen.length;
    await stage.pass(PROBE_MS);
    for (const { checks } of verifiers) checks.wake();
    await eventually(`probe ${times}`, async () => nodes.seen.length > before && (await waiting()) === count);
  }
  // One check and one call for each of the two endpoints; real time passes as well.
  const passed = Math.ceil((performance.now() - failingMs) / PROBE_MS);
  expect(nodes.seen.length - failing).toBeLessThanOrEqual(2 * (5 + passed));
  expect(nodes.receipts()).toBe(0);

  nodes.isDown = false;
  const [calls, sinceMs] = [nodes.calls.length, performance.now()];
  await stage.pass(PROBE_MS);
  await eventually('all are judged', async () => {
    const counts = await stage.store.counts();
    return counts.every(({ state }) => state === 'verified');
  });
  const seconds = (performance.now() - sinceMs) / 1_000;
  const after = nodes.calls.slice(calls);
  expect(new Set(after.map(({ outcome }) => outcome))).toEqual(new Set(['ok']));
  // A process may use the budget of one second more.
  const own = after.filter(({ endpoint }) => endpoint === 'own');
  expect(own.length).toBeLessThanOrEqual(verifiers.length * requestsPerSecond * (seconds + 1));
  expect(nodes.receipts()).toBe(count);
  for (const endpoint of ['own', 'other']) expect(await stage.waitingFor(endpoint, 'failed')).toBe(0);
  await Promise.all(verifiers.map((verifier) => verifier.close()));
  other.disconnect();
}
