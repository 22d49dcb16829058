import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { type Hex, hexToBigInt, hexToNumber, isHex, numberToHex } from 'viem';
import { z } from 'zod';
import {
  BASE_FEE,
  BLOCK_GAS,
  type BlockPlace,
  type CallOutcome,
  type CallRequest,
  type Engine,
} from './engine.ts';

const START_MS = 20_000;
const CALL_MS = 30_000;

const hex = z.custom<Hex>((value) => isHex(value), { error: 'expected hex' });
const answerSchema = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string(), data: z.unknown().optional() }).optional(),
});
const receiptSchema = z.object({
  status: hex,
  gasUsed: hex,
  contractAddress: hex.nullish(),
  logs: z.array(z.object({ address: hex, topics: z.array(hex), data: hex })),
});

/** Starts an anvil of its own as the engine of a chain. It mines on request only, after the sandbox's blocks. */
export async function createAnvilEngine(program: string, chainId: number): Promise<Engine> {
  const child = spawn(
    program,
    [
      ...['--port', '0', '--chain-id', String(chainId), '--hardfork', 'cancun', '--no-mining'],
      ...['--gas-limit', String(BLOCK_GAS), '--timestamp', '1', '--accounts', '1'],
      ...['--block-base-fee-per-gas', String(BASE_FEE), '--disable-min-priority-fee'],
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const url = await listening(child);
  let lastSeconds = 1;

  async function request(method: string, ...params: unknown[]): Promise<z.infer<typeof answerSchema>> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: AbortSignal.timeout(CALL_MS),
    });
    return answerSchema.parse(await response.json());
  }

  async function get<T>(schema: z.ZodType<T>, method: string, ...params: unknown[]): Promise<T> {
    const { result, error } = await request(method, ...params);
    if (error !== undefined) throw new Error(`anvil, ${method}: ${error.message}`);
    return schema.parse(result);
  }

  /** Mines a block at a time; no time is earlier than that of the block before. */
  async function mineAt({ timestamp }: BlockPlace): Promise<void> {
    lastSeconds = Math.max(timestamp, lastSeconds);
    await get(z.unknown(), 'evm_setNextBlockTimestamp', numberToHex(lastSeconds));
    await get(z.unknown(), 'anvil_setNextBlockBaseFeePerGas', numberToHex(BASE_FEE));
    await get(z.unknown(), 'evm_mine');
  }

  /** Calls see the time of the newest block: an empty one brings it up to date. */
  async function bringTo(place: BlockPlace): Promise<void> {
    if (place.timestamp > lastSeconds) await mineAt(place);
  }

  async function outcome(method: string, wanted: CallRequest): Promise<CallOutcome> {
    const { from, to, data, value, gas } = wanted;
    const call = {
      from,
      ...(to === null ? {} : { to }),
      data,
      value: numberToHex(value),
      gas: numberToHex(gas),
    };
    const { result, error } = await request(method, call, 'latest');
    if (error === undefined) return { type: 'returned', data: hex.parse(result) };
    const reverted = hex.safeParse(error.data);
    return reverted.success
      ? { type: 'reverted', data: reverted.data }
      : { type: 'failed', message: error.message };
  }

  return {
    async call(request, place) {
      await bringTo(place);
      return outcome('eth_call', request);
    },
    async estimate(request, place) {
      await bringTo(place);
      const estimated = await outcome('eth_estimateGas', request);
      return estimated.type === 'returned' ? hexToBigInt(estimated.data) : estimated;
    },
    async execute(raw, place) {
      const txHash = await get(hex, 'eth_sendRawTransaction', raw);
      await mineAt(place);
      const receipt = await get(receiptSchema, 'eth_getTransactionReceipt', txHash);
      return {
        succeeded: receipt.status === '0x1',
        gasUsed: hexToBigInt(receipt.gasUsed),
        logs: receipt.logs.map(({ address, topics, data }) => ({ address, topics, data })),
        contract: receipt.contractAddress ?? null,
      };
    },
    async account(address) {
      const balance = await get(hex, 'eth_getBalance', address, 'latest');
      const nonce = await get(hex, 'eth_getTransactionCount', address, 'latest');
      return { balance: hexToBigInt(balance), nonce: hexToNumber(nonce) };
    },
    code: (address) => get(hex, 'eth_getCode', address, 'latest'),
    storage: (address, slot) => get(hex, 'eth_getStorageAt', address, slot, 'latest'),
    setBalance: (address, balance) => set('anvil_setBalance', address, numberToHex(balance)),
    setCode: (address, code) => set('anvil_setCode', address, code),
    setStorage: (address, slot, value) => set('anvil_setStorageAt', address, slot, value),
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill();
      await once(child, 'exit');
    },
  };

  async function set(method: string, ...params: unknown[]): Promise<void> {
    await get(z.unknown(), method, ...params);
  }
}

/** The address at which a started program listens. */
async function listening(child: ReturnType<typeof spawn>): Promise<string> {
  const failure = new Promise<never>((_, reject) => {
    child.once('error', ({ message }) => reject(new Error(`anvil could not be started: ${message}`)));
    child.once('exit', (code) => reject(new Error(`anvil ended with exit code ${code} before it listened`)));
  });
  failure.catch(() => {});
  const { stdout } = child;
  if (stdout === null) throw new Error('anvil has no output');
  const lines = createInterface({ input: stdout });
  const found = new Promise<string>((done, reject) => {
    setTimeout(() => reject(new Error(`anvil did not listen within ${START_MS} ms`)), START_MS).unref();
    lines.on('line', (line) => {
      const [, address] = /^Listening on (\S+)/.exec(line) ?? [];
      if (address !== undefined) done(`http://${address}`);
    });
  });
  try {
    return await Promise.race([found, failure]);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}
