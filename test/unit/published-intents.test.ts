import {
  encodeAbiParameters,
  encodeEventTopics,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  keccak256,
  toHex,
} from 'viem';
import { describe, expect, test } from 'vitest';
import type { RawLog } from '../../sandbox/chains/engine.ts';
import { PORTAL_ABI, PORTAL_ADDRESS } from '../../sandbox/contracts/portal.ts';
import { ROUTE_ABI } from '../../sandbox/quotes/intents.ts';
import { publishedIntents } from '../../sandbox/world/published.ts';

const BASE = 8453;
const OPTIMISM = 10;
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const CREATOR = '0x52908400098527886E0F7030069857D2E4169EE7';
const RECIPIENT = '0x2222222222222222222222222222222222222222';
const UNLISTED = '0x3333333333333333333333333333333333333333';
const HASH = keccak256(toHex('an intent'));
const AMOUNT = 5_000_000n;

const PAYMENT = { target: USDC_OPTIMISM, data: transfer(), value: 0n } as const;
const REWARD = { token: USDC_BASE, amount: AMOUNT } as const;

function transfer(): Hex {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [RECIPIENT, AMOUNT - 1n] });
}

function routeOf(calls: readonly { target: Hex; data: Hex; value: bigint }[]): Hex {
  const terms = { salt: HASH, deadline: 9n, portal: PORTAL_ADDRESS, nativeAmount: 0n, tokens: [] } as const;
  return encodeAbiParameters(ROUTE_ABI, [{ ...terms, calls }]);
}

function topicsOf(eventName: 'IntentPublished' | 'IntentFunded', args: object): Hex[] {
  const topics = encodeEventTopics({ abi: PORTAL_ABI, eventName, args: { intentHash: HASH, ...args } });
  return topics.flatMap((topic) => (typeof topic === 'string' ? [topic] : []));
}

type Publication = { destination?: bigint; route?: Hex; rewards?: readonly { token: Hex; amount: bigint }[] };

function published({
  destination = BigInt(OPTIMISM),
  route = routeOf([PAYMENT]),
  rewards = [REWARD],
}: Publication = {}): RawLog {
  const inputs = [
    { type: 'uint64' },
    { type: 'bytes' },
    { type: 'uint64' },
    { type: 'uint256' },
    {
      type: 'tuple[]',
      components: [
        { name: 'token', type: 'address' },
        { name: 'amount', type: 'uint256' },
      ],
    },
  ] as const;
  const topics = topicsOf('IntentPublished', { creator: CREATOR, prover: UNLISTED });
  const data = encodeAbiParameters(inputs, [destination, route, 1_800_000_000n, 0n, rewards]);
  return { address: PORTAL_ADDRESS, topics, data };
}

function funded(complete = true): RawLog {
  const topics = topicsOf('IntentFunded', { funder: CREATOR });
  return { address: PORTAL_ADDRESS, topics, data: encodeAbiParameters([{ type: 'bool' }], [complete]) };
}

describe('the intents that a transaction published', () => {
  test('have the terms of their route and reward', () => {
    const [intent, ...others] = publishedIntents(BASE, [published(), funded()]);
    expect(others).toEqual([]);
    expect(intent).toMatchObject({
      hash: HASH,
      deadline: 1_800_000_000,
      order: {
        funder: CREATOR,
        recipient: RECIPIENT,
        source: { chain: { chainId: BASE }, token: USDC_BASE, amount: '5000000' },
        destination: { chain: { chainId: OPTIMISM }, token: USDC_OPTIMISM, amount: '4999999' },
      },
    });
  });

  test.each<[string, RawLog[]]>([
    ['that is not funded', [published()]],
    ['that is funded in part', [published(), funded(false)]],
    ['of another contract', [{ ...published(), address: UNLISTED }, funded()]],
    ['on a chain that does not exist', [published({ destination: 2n ** 64n - 1n }), funded()]],
    ['for a token that is not listed', [published({ rewards: [{ token: UNLISTED, amount: 1n }] }), funded()]],
    ['for two tokens', [published({ rewards: [REWARD, REWARD] }), funded()]],
    ['for nothing', [published({ rewards: [] }), funded()]],
    ['whose route is no route', [published({ route: '0x1234' }), funded()]],
    ['that calls nothing', [published({ route: routeOf([]) }), funded()]],
    ['that calls twice', [published({ route: routeOf([PAYMENT, PAYMENT]) }), funded()]],
    ['that calls no token', [published({ route: routeOf([{ ...PAYMENT, target: UNLISTED }]) }), funded()]],
    [
      'that does not transfer',
      [published({ route: routeOf([{ ...PAYMENT, data: '0x12345678' }]) }), funded()],
    ],
    ['whose log is damaged', [{ ...published(), data: '0x00' }, funded()]],
  ])('are none for an intent %s', (_case, logs) => {
    expect(publishedIntents(BASE, logs)).toEqual([]);
  });
});
