import { decodeErrorResult, type Hex, hexToBigInt, hexToNumber, isHex, numberToHex, parseAbi } from 'viem';
import { z } from 'zod';
import { BASE_FEE, type CallOutcome, type CallRequest, MOST_GAS } from './engine.ts';
import type { Machine } from './machine.ts';
import type { Methods, View } from './rpc.ts';
import { param, RpcError } from './rpc-error.ts';

/** The tip that the sandbox proposes, in wei per gas. */
const TIP = 1_000_000n;

/** Depth below the newest block at which requests get its state. */
const STATE_BLOCKS = 128;

const MOST_FEE_BLOCKS = 1_024;

// The body of a request limits the length.
const hexText = (pattern: RegExp, expected: string) =>
  z
    .string()
    .regex(pattern, { error: `expected ${expected}` })
    .transform((text): Hex => `0x${text.slice(2).toLowerCase()}`);

const address = hexText(/^0x[0-9a-fA-F]{40}$/, '0x and 40 hex digits');
const bytes = hexText(/^0x([0-9a-fA-F]{2})*$/, '0x and an even number of hex digits');
const quantity = hexText(/^0x[0-9a-fA-F]{1,64}$/, '0x and 1 to 64 hex digits');
const blockSchema = z
  .union([
    z.enum(['latest', 'pending', 'safe', 'finalized', 'earliest']),
    quantity,
    z.object({ blockNumber: quantity }).transform(({ blockNumber }) => blockNumber),
    z.object({ blockHash: quantity }).transform(() => 'latest' as const),
  ])
  .default('latest');

const callSchema = z.object({
  from: address.default('0x0000000000000000000000000000000000000000'),
  to: address.nullish(),
  data: bytes.optional(),
  input: bytes.optional(),
  value: quantity.default('0x0'),
  gas: quantity.optional(),
});

/** Methods of an EVM node about its state and new transactions. */
export const EVM_STATE_METHODS: Methods = {
  eth_accounts: () => [],
  eth_gasPrice: () => numberToHex(BASE_FEE + TIP),
  eth_maxPriorityFeePerGas: () => numberToHex(TIP),
  eth_feeHistory: feeHistory,
  eth_sendRawTransaction: (view, params) => machineOf(view).send(param(params, 0, bytes)),
  eth_getTransactionCount: async (view, params) => {
    const owner = param(params, 0, address);
    if (blockOf(view, params, 1) === 'pending') return numberToHex(await machineOf(view).nextNonce(owner));
    return machineOf(view).read(async (engine) => numberToHex((await engine.account(owner)).nonce));
  },
  eth_getBalance: (view, params) => {
    const owner = param(params, 0, address);
    blockOf(view, params, 1);
    return machineOf(view).read(async (engine) => numberToHex((await engine.account(owner)).balance));
  },
  eth_getCode: (view, params) => {
    const owner = param(params, 0, address);
    blockOf(view, params, 1);
    return machineOf(view).read((engine) => engine.code(owner));
  },
  eth_getStorageAt: (view, params) => {
    const owner = param(params, 0, address);
    const slot = numberToHex(hexToBigInt(param(params, 1, quantity)), { size: 32 });
    blockOf(view, params, 2);
    return machineOf(view).read((engine) => engine.storage(owner, slot));
  },
  eth_call: async (view, params) => {
    const request = callOf(params);
    blockOf(view, params, 1);
    return returned(await machineOf(view).read((engine, place) => engine.call(request, place)));
  },
  eth_estimateGas: async (view, params) => {
    const request = callOf(params);
    blockOf(view, params, 1);
    const gas = await machineOf(view).read((engine, place) => engine.estimate(request, place));
    return typeof gas === 'bigint' ? numberToHex(gas) : returned(gas);
  },
};

function machineOf({ on }: View): Machine {
  if (on.machine === null) throw new Error(`chain ${on.chain.chainId} has no EVM`);
  return on.machine;
}

function callOf(params: readonly unknown[]): CallRequest {
  const { from, to = null, data, input, value, gas } = param(params, 0, callSchema);
  const most = gas === undefined ? MOST_GAS : hexToBigInt(gas);
  return {
    from,
    to,
    data: input ?? data ?? '0x',
    value: hexToBigInt(value),
    gas: most < MOST_GAS ? most : MOST_GAS,
  };
}

/** Checks the block of a request about the state: only the newest state is stored. */
function blockOf({ on, nowMs }: View, params: readonly unknown[], index: number): string {
  const block = param(params, index, blockSchema);
  if (block === 'earliest' || isHex(block)) {
    const number = block === 'earliest' ? 0n : hexToBigInt(block);
    const head = on.blocks.head(nowMs);
    if (number > BigInt(head)) throw new RpcError(-32000, 'header not found');
    if (number < BigInt(head - STATE_BLOCKS)) {
      throw new RpcError(-32000, `missing trie node: the state of block ${number} is not available`);
    }
  }
  return block;
}

/** The returned data of a call. Throws `RpcError` as a node reports a failed one: code 3 with the data of a revert. */
function returned(outcome: CallOutcome): Hex {
  if (outcome.type === 'returned') return outcome.data;
  if (outcome.type === 'failed') throw new RpcError(-32000, outcome.message);
  const reason = reasonOf(outcome.data);
  throw new RpcError(3, `execution reverted${reason === null ? '' : `: ${reason}`}`, outcome.data);
}

const REASON = parseAbi(['error Error(string reason)']);

function reasonOf(data: Hex): string | null {
  try {
    return decodeErrorResult({ abi: REASON, data }).args[0];
  } catch {
    return null;
  }
}

function feeHistory({ on, nowMs }: View, params: readonly unknown[]): Record<string, unknown> {
  const count = param(
    params,
    0,
    z.union([
      quantity,
      z
        .int()
        .min(1)
        .transform((number) => numberToHex(number)),
    ]),
  );
  const newest = param(params, 1, blockSchema);
  const percentiles = param(params, 2, z.array(z.number().min(0).max(100)).max(100).default([]));
  const head = on.blocks.head(nowMs);
  const last = isHex(newest) ? Math.min(hexToNumber(newest), head) : head;
  const blocks = Math.min(Number(hexToBigInt(count)), MOST_FEE_BLOCKS, last + 1);
  return {
    oldestBlock: numberToHex(last - blocks + 1),
    baseFeePerGas: Array.from({ length: blocks + 1 }, () => numberToHex(BASE_FEE)),
    gasUsedRatio: Array.from({ length: blocks }, () => 0.5),
    ...(percentiles.length === 0
      ? {}
      : { reward: Array.from({ length: blocks }, () => percentiles.map(() => numberToHex(TIP))) }),
  };
}
