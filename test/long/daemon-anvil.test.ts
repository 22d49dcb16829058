import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { type AnvilChain, startAnvil } from '../support/anvil.ts';
import { ChildDaemon } from '../support/child-daemon.ts';
import { TestReceiver, testPrefix } from '../support/daemon.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { orderAt } from '../support/sandbox-order.ts';

const OPTIONAL = needs(PARTS.anvil);

const ALICE = '0x52908400098527886e0f7030069857d2e4169ee7';
const BOB = '0xde709f2102306220921060314715629080e2fb77';
const AMOUNT = 1_000_000n;

/** Only the nodes' answers decide: the sandbox states its payments on request, and does not know that chain. */
describe.skipIf(OPTIONAL.skip)(`a daemon at a real EVM node with a real token${OPTIONAL.note}`, () => {
  let chain: AnvilChain;
  const sandbox = new Sandbox({ transfersPerSecond: 0, timeScale: 100, wallets: 1 });
  const hook = new TestReceiver();
  let daemon: ChildDaemon;

  beforeAll(async () => {
    chain = await startAnvil();
    await sandbox.start();
    await hook.start();
    const endpoint = (name: string, host: string) => ({ name, url: `http://${host}:${chain.port}` });
    daemon = new ChildDaemon({
      baseUrl: sandbox.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 'treasury', wallets: [ALICE], recipients: [ALICE], receivers: ['hook'] }],
      more: {
        chains: {
          [chain.chainId]: { rpc: [endpoint('own', '127.0.0.1'), endpoint('other', 'localhost')] },
        },
        tokens: [{ chainId: chain.chainId, address: chain.token, symbol: 'TST', decimals: 6 }],
      },
    });
    await daemon.start();
  });

  afterAll(async () => {
    await daemon.kill();
    await hook.close();
    await sandbox.close();
    await chain.close();
  });

  /** Has the upstream state that a transaction delivered, makes it final, and waits for the report. */
  async function reportedOf(txHash: string) {
    const { intentHash } = await orderAt(sandbox, {
      funder: ALICE,
      recipient: ALICE,
      delivered: AMOUNT.toString(),
      states: { txHash, chainId: chain.chainId, token: chain.token },
    });
    const mine = (type: RegExp) =>
      hook.events.filter(
        ({ type: found, data }) => data.subject.id === `intent:${intentHash}` && type.test(found),
      );
    await hook.until(() => mine(/^intent\.(filled|settled)$/).length > 0);
    expect(mine(/verified|disputed|unproven/)).toEqual([]);
    await chain.mine(3);
    await hook.until(() => mine(/verified|disputed|unproven/).length > 0);
    const [reported, ...more] = mine(/verified|disputed|unproven/);
    expect(more).toEqual([]);
    return { type: reported?.type, proof: reported?.data.proof };
  }

  test('reports by webhook that the stated payment has moved', async () => {
    const txHash = await chain.transfer(ALICE, AMOUNT);
    const { type, proof } = await reportedOf(txHash);
    expect(type).toBe('intent.verified');
    expect(proof).toMatchObject({
      payment: 'destination',
      chainId: String(chain.chainId),
      txHash,
      checked: ['chain', 'success', 'token', 'amount', 'recipient', 'exclusive', 'final'],
      moved: [{ token: chain.token, to: ALICE, amount: AMOUNT.toString() }],
      endpoints: ['other', 'own'],
    });
    expect(proof?.singleSource).toBeUndefined();
  });

  test.each([
    ['short', 'less', () => chain.transfer(ALICE, AMOUNT - 1n)],
    ['other-recipient', 'to somebody else', () => chain.transfer(BOB, AMOUNT)],
    ['reverted', 'nothing, for it failed', () => chain.transfer(ALICE, 10n ** 30n)],
  ])('disputes as %s a payment that moved %s', async (reason, _, pay) => {
    const { type, proof } = await reportedOf(await pay());
    expect(type).toBe('intent.disputed');
    expect(proof).toMatchObject({ reason, endpoints: ['other', 'own'] });
  });

  test('disputes a payment that already proved another intent', async () => {
    const txHash = await chain.transfer(ALICE, AMOUNT);
    expect((await reportedOf(txHash)).type).toBe('intent.verified');
    expect(await reportedOf(txHash)).toMatchObject({
      type: 'intent.disputed',
      proof: { reason: 'other-intent' },
    });
  });
});
