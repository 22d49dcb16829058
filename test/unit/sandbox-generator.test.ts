import { createHash } from 'node:crypto';
import { base58, createBase58check } from '@scure/base';
import { getAddress } from 'viem';
import { expect, test } from 'vitest';
import { createGenerator } from '../../sandbox/world/generator.ts';
import { lifeOf } from '../../sandbox/world/life.ts';
import type { TransferPlan } from '../../sandbox/world/plan.ts';

function drawMany(seed: number, count: number): TransferPlan[] {
  const generator = createGenerator({ seed, wallets: 10 });
  return Array.from({ length: count }, (_, index) => generator.transfer({ stream: 'born', index }));
}

test('the same seed gives the same wallets, transfers, lives and gaps', () => {
  const draw = (seed: number) => {
    const generator = createGenerator({ seed, wallets: 10 });
    const plans = drawMany(seed, 50);
    return {
      wallets: generator.wallets,
      plans,
      lives: plans.map(lifeOf),
      gaps: plans.map((_, n) => generator.gap(n)),
    };
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
});

test('a transfer is the same after any other draws', () => {
  const generator = createGenerator({ seed: 3, wallets: 10 });
  const alone = generator.transfer({ stream: 'born', index: 20 });
  expect(drawMany(3, 21)[20]).toEqual(alone);
});

test('with a skew the first wallets have most transfers, and without one all have about as many', () => {
  const perWallet = (walletSkew: number): number[] => {
    const generator = createGenerator({ seed: 1, wallets: 20, walletSkew });
    const counts = generator.wallets.map(() => 0);
    for (let index = 0; index < 2_000; index++) {
      const { funder, recipient } = generator.transfer({ stream: 'born', index });
      generator.wallets.forEach(({ address }, place) => {
        if (address === funder || address === recipient) counts[place] = (counts[place] ?? 0) + 1;
      });
    }
    return counts;
  };
  const alike = perWallet(0);
  expect(Math.max(...alike)).toBeLessThan(3 * Math.min(...alike));
  const skewed = perWallet(1.1);
  expect(skewed[0]).toBe(Math.max(...skewed));
  expect(skewed[0]).toBeGreaterThan(10 * (skewed[19] ?? 0));
});

test('no two transfers share an id', () => {
  const plans = drawMany(1, 2_000);
  for (const ids of [
    plans.map(({ intentHash }) => intentHash),
    plans.map(({ source }) => source.txHash),
    plans.map(({ destination }) => destination.txHash),
    plans.flatMap(({ quoteUuid }) => quoteUuid ?? []),
    plans.flatMap(({ job }) => job?.uuid ?? []),
    plans.flatMap(({ vaultAddress }) => vaultAddress ?? []),
  ]) {
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThan(0);
  }
});

test('every wallet and party has a valid address of the kind of its chain', () => {
  const sha256 = (data: Uint8Array) => new Uint8Array(createHash('sha256').update(data).digest());
  const expectValid = (address: string, kind: string) => {
    if (kind === 'evm') expect(getAddress(address)).toBe(address);
    else if (kind === 'solana') expect(base58.decode(address)).toHaveLength(32);
    else expect(createBase58check(sha256).decode(address)[0]).toBe(0x41);
  };
  const { wallets } = createGenerator({ seed: 1, wallets: 20 });
  expect(new Set(wallets.map(({ kind }) => kind))).toEqual(new Set(['evm', 'solana', 'tron']));
  for (const { address, kind } of wallets) expectValid(address, kind);
  for (const { funder, recipient, source, destination } of drawMany(1, 300)) {
    expectValid(funder, source.chain.kind);
    expectValid(recipient, destination.chain.kind);
  }
});

test('a transfer crosses chains, belongs to a wallet and delivers no more than it takes', () => {
  const { wallets } = createGenerator({ seed: 1, wallets: 10 });
  const own = new Set(wallets.map(({ address }) => address));
  for (const { funder, recipient, source, destination } of drawMany(1, 1_000)) {
    expect(source.chain).not.toBe(destination.chain);
    expect(own.has(funder) || own.has(recipient)).toBe(true);
    expect(BigInt(destination.amount)).toBeGreaterThan(0n);
    expect(BigInt(destination.amount)).toBeLessThanOrEqual(BigInt(source.amount));
  }
});

test('quotes, gasless jobs, vaults and refunds come in their shares', () => {
  const plans = drawMany(1, 5_000);
  const share = (fits: (plan: TransferPlan) => boolean) => plans.filter(fits).length / plans.length;
  expect(share(({ origin }) => origin === 'quote')).toBeCloseTo(0.25, 1);
  expect(share(({ origin }) => origin === 'gasless')).toBeCloseTo(0.15, 1);
  expect(share(({ origin }) => origin === 'vault')).toBeCloseTo(0.1, 1);
  expect(share(({ fate }) => fate === 'refunded')).toBeCloseTo(0.06, 1);
  const fills = plans.map(({ waits }) => waits.toFill).sort((left, right) => left - right);
  expect(fills[2_500]).toBeGreaterThan(20);
  expect(fills[2_500]).toBeLessThan(45);
});
