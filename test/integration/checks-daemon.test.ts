import { describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { runCommand } from '../support/command.ts';
import { type TestConfig, TestReceiver, testPrefix } from '../support/daemon.ts';
import { newSandbox } from '../support/deployment.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { orderAt, type SandboxOrder } from '../support/sandbox-order.ts';

const WALLET = '0x52908400098527886e0f7030069857d2e4169ee7';
const TOKEN = 'a-token-of-the-test-with-32-characters';

const { later, started } = opening();

/** A sandbox whose transfers take seconds, and whose blocks are final within two. */
async function slowSandbox(): Promise<Sandbox> {
  return started(newSandbox({ seed: 5, transfersPerSecond: 0, timeScale: 100, finalitySeconds: 200 }));
}

function endpointsOf(sandbox: Sandbox, chainId: number): object {
  const own = sandbox.rpcUrl(chainId, 'own');
  const rpc = [
    { name: 'own', url: own, requestsPerSecond: 200 },
    {
      name: 'other',
      url: own.replace('127.0.0.1', 'localhost').replace('/own', '/other'),
      requestsPerSecond: 200,
    },
  ];
  return { rpc };
}

function configOf(sandbox: Sandbox, hook: TestReceiver, prefix: string, chains: object): TestConfig {
  return {
    baseUrl: sandbox.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 'treasury', wallets: [WALLET], recipients: [WALLET], receivers: ['hook'] }],
    more: { chains, server: { host: '127.0.0.1', port: 0, token: TOKEN } },
  };
}

async function read(url: string): Promise<Record<string, unknown>> {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${TOKEN}` } });
  return z.record(z.string(), z.json()).parse(await answer.json());
}

async function fault(sandbox: Sandbox, what: object): Promise<void> {
  const added = await fetch(`${sandbox.controlUrl}/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(what),
  });
  expect(await added.text().then((text) => (added.ok ? '' : text))).toBe('');
}

async function until(url: string, id: string, wanted: { state: string; because?: string }): Promise<void> {
  const found = z.array(z.object({ state: z.string(), because: z.string().nullable() }));
  await eventually(`${id}: ${JSON.stringify(wanted)}`, async () => {
    const { checks } = await read(`${url}/api/v1/subjects/${id}`);
    return found
      .catch([])
      .parse(checks)
      .some(({ state, because }) => state === wanted.state && (wanted.because ?? because) === because);
  });
}

describe('a daemon that is given endpoints of a chain while it runs', () => {
  test('reports from then on the proof of each delivery, by webhook, API and metrics', async () => {
    const sandbox = await slowSandbox();
    const hook = await started(new TestReceiver());
    const prefix = testPrefix();
    const { daemon, write } = await reloadable(configOf(sandbox, hook, prefix, {}), { later });
    const order = async (more: SandboxOrder): Promise<string> =>
      `intent:${(await orderAt(sandbox, { funder: WALLET, recipient: WALLET, ...more })).intentHash}`;
    const before = await order({});
    await hook.until((events) =>
      events.some(({ type, data }) => type === 'intent.settled' && data.subject.id === before),
    );

    await write(configOf(sandbox, hook, prefix, { 10: endpointsOf(sandbox, 10) }));
    expect(await daemon.reload()).toMatchObject({ ok: true });
    const orders = {
      true: await order({}),
      short: await order({ lie: 'short' }),
      'other-recipient': await order({ lie: 'other-recipient' }),
      reverted: await order({ lie: 'reverted' }),
      'no-transfer': await order({ lie: 'no-log' }),
      elsewhere: await order({ to: 42161 }),
    };
    const proofs = (
      await hook.until((events) => events.filter(({ data }) => data.proof !== undefined).length >= 5)
    ).filter(({ data }) => data.proof !== undefined);
    const reported = Object.fromEntries(
      proofs.map(({ type, data }) => [data.subject.id, [type, data.proof?.reason]]),
    );
    expect(reported).toEqual({
      [orders.true]: ['intent.verified', undefined],
      [orders.short]: ['intent.disputed', 'short'],
      [orders['other-recipient']]: ['intent.disputed', 'other-recipient'],
      [orders.reverted]: ['intent.disputed', 'reverted'],
      [orders['no-transfer']]: ['intent.disputed', 'no-transfer'],
    });
    const verified = proofs.find(({ type }) => type === 'intent.verified');
    expect(verified?.data.proof).toMatchObject({
      payment: 'destination',
      chainId: '10',
      checked: ['chain', 'success', 'token', 'amount', 'recipient', 'exclusive', 'final'],
      endpoints: ['other', 'own'],
    });

    const details = await read(`${daemon.url}/api/v1/subjects/${orders.short}`);
    expect(details).toMatchObject({
      proof: 'disputed',
      checks: [{ state: 'disputed', because: 'short', payment: 'destination', chain: 'Optimism' }],
    });
    const own = z.array(z.object({ moved: z.array(z.object({ units: z.string(), to: z.string() })) }));
    const arrived = own.parse(details.checks)[0]?.moved.find(({ to }) => to === WALLET)?.units;
    const client = ['--url', daemon.url];
    const env = { INTENTWATCH_TOKEN: TOKEN };
    const shown = await runCommand(['show', orders.short, ...client], env);
    expect(shown.out).toContain(`disputed on Optimism: short`);
    expect(shown.out).toContain(`moved ${arrived} USDC to ${WALLET}`);
    const listed = await runCommand(['ls', '--proof', 'disputed', ...client], env);
    expect(listed.out.split('\n').filter((line) => line.includes('disputed'))).toHaveLength(4);
    expect((await runCommand(['ls', '--proof', 'good', ...client], env)).err).toContain('verified, disputed');
    const disputed = await read(`${daemon.url}/api/v1/subjects?proof=disputed`);
    expect(disputed.subjects).toHaveLength(4);
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toMatch(/^intentwatch_proofs_total\{chain="10",outcome="disputed"\} 4$/m);
    expect(metrics).toMatch(/^intentwatch_proof_oldest_unread_event_seconds [\d.e-]+$/m);
    expect(metrics).toMatch(/^intentwatch_proof_checks\{chain="10",state="verified"\} 1$/m);
    expect(metrics).toMatch(/^intentwatch_upstream_lag_seconds_count\{route="8453:10"\} 1$/m);
    expect(metrics).toMatch(/^intentwatch_rpc_calls_total\{chain="10",endpoint="own",outcome="ok"\} [1-9]/m);
  });
});

describe('a chain that is removed from the config while payments on it are checked', () => {
  async function checking() {
    const sandbox = await slowSandbox();
    const hook = await started(new TestReceiver());
    await fault(sandbox, { type: 'latency', ms: 600_000, path: '/chains/10/' });
    const prefix = testPrefix();
    const config = (chains: object) => configOf(sandbox, hook, prefix, chains);
    const on = { 10: endpointsOf(sandbox, 10), 42161: endpointsOf(sandbox, 42161) };
    const running = await reloadable(config(on), { later });
    const made = await orderAt(sandbox, { funder: WALLET, recipient: WALLET });
    const id = `intent:${made.intentHash}`;
    await until(running.daemon.url, id, { state: 'waiting' });
    return { sandbox, hook, config, on, running, id };
  }

  test('stops their checks, and they are checked once it is back', async () => {
    const { sandbox, hook, config, on, running, id } = await checking();
    const { daemon, write, lines } = running;
    await write(config({ 42161: on[42161] }));
    expect(await daemon.reload()).toMatchObject({ ok: true });
    await until(daemon.url, id, { state: 'unchecked', because: 'chain-not-configured' });
    expect(lines.filter(({ msg }) => msg === 'check.ended')).toMatchObject([
      { subject: id, state: 'unchecked', because: 'chain-not-configured', isReported: false },
    ]);
    expect(hook.events.filter(({ data }) => data.proof !== undefined)).toEqual([]);

    await fetch(`${sandbox.controlUrl}/faults`, { method: 'DELETE' });
    await write(config(on));
    expect(await daemon.reload()).toMatchObject({ ok: true });
    await hook.until((events) =>
      events.some(({ type, data }) => type === 'intent.verified' && data.subject.id === id),
    );
  });

  test('as the last one stops their checks also at a start without it', async () => {
    const { config, running, id } = await checking();
    await running.daemon.close();
    const { daemon } = await reloadable(config({}), { later });
    await until(daemon.url, id, { state: 'unchecked', because: 'chain-not-configured' });
  });
});

describe('endpoints of a chain that are down', () => {
  test('have a payment judged that was stated long ago as soon as they answer again', async () => {
    const sandbox = await slowSandbox();
    const hook = await started(new TestReceiver());
    const prefix = testPrefix();
    await fault(sandbox, { type: 'bare-error', status: 503, path: '/chains/10/' });
    const chains = { 10: endpointsOf(sandbox, 10) };
    const { daemon } = await reloadable(configOf(sandbox, hook, prefix, chains), { later });
    const made = await orderAt(sandbox, { funder: WALLET, recipient: WALLET });
    const id = `intent:${made.intentHash}`;
    await until(daemon.url, id, { state: 'waiting', because: 'unreachable' });
    // It was stated 20 minutes ago, and is read once more meanwhile.
    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    later(async () => redis.disconnect());
    const { checks } = new Keys(prefix);
    const check = `${checks}:of:${id}|destination`;
    const before = Number(await redis.hget(check, 'polls'));
    await redis.hset(check, 'statedAt', String(Date.now() - 1_200_000));
    await redis.zadd(`${checks}:due:10`, '0', `${id}|destination`);
    await eventually('it was read again', async () => Number(await redis.hget(check, 'polls')) > before);
    await fetch(`${sandbox.controlUrl}/faults`, { method: 'DELETE' });
    await hook.until((events) =>
      events.some(({ type, data }) => type === 'intent.verified' && data.subject.id === id),
    );
  });
});

describe('endpoints of a chain that hang', () => {
  // A hanging endpoint hangs for longer than the test may take.
  test('hold up neither the checks of another chain nor the end of the daemon', {
    timeout: 500_000,
  }, async () => {
    const sandbox = await slowSandbox();
    const hook = await started(new TestReceiver());
    const chains = { 10: endpointsOf(sandbox, 10), 42161: endpointsOf(sandbox, 42161) };
    await fault(sandbox, { type: 'latency', ms: 600_000, path: '/chains/42161/' });
    const { daemon } = await reloadable(configOf(sandbox, hook, testPrefix(), chains), { later });
    const order = async (to: number): Promise<string> =>
      `intent:${(await orderAt(sandbox, { funder: WALLET, recipient: WALLET, to })).intentHash}`;
    const stuck = await Promise.all(Array.from({ length: 12 }, () => order(42161)));
    await eventually('checks of the chain that hangs are made', async () => {
      const states = await Promise.all(
        stuck.map(async (id) => (await read(`${daemon.url}/api/v1/subjects/${id}`)).checks),
      );
      return states.every((checks) => Array.isArray(checks) && checks.length > 0);
    });
    const free = await order(10);
    await hook.until((events) =>
      events.some(({ type, data }) => type === 'intent.verified' && data.subject.id === free),
    );
    expect(hook.events.filter(({ data }) => data.proof !== undefined)).toHaveLength(1);
    await daemon.close();
  });
});
