import { createBlock } from '@ethereumjs/block';
import { createCustomCommon, Hardfork, Mainnet } from '@ethereumjs/common';
import { createTxFromRLP } from '@ethereumjs/tx';
import { Address } from '@ethereumjs/util';
import { createVM, runTx } from '@ethereumjs/vm';
import { bytesToHex, type Hex, hexToBytes, pad, trim } from 'viem';
import {
  BASE_FEE,
  BLOCK_GAS,
  type BlockPlace,
  type CallOutcome,
  type CallRequest,
  type Engine,
  intrinsicGas,
  MOST_GAS,
} from './engine.ts';

/** Share of its remaining gas that a call can pass on is 63 of 64: the estimate grows by this until it is enough. */
const GROWTH_DIVISOR = 64n;

/** Creates an engine in this process. Only the sandbox's first transaction or call loads this module. */
export async function createJsEngine(chainId: number): Promise<Engine> {
  const common = createCustomCommon({ chainId, name: `chain-${chainId}` }, Mainnet, {
    hardfork: Hardfork.Cancun,
  });
  const vm = await createVM({ common });
  const { stateManager } = vm;

  const blockAt = ({ number, timestamp }: BlockPlace) =>
    createBlock(
      { header: { number, timestamp, gasLimit: BLOCK_GAS, baseFeePerGas: BASE_FEE } },
      { common, skipConsensusFormatValidation: true },
    );

  /** Runs a call and takes back its effects. */
  async function run({ from, to, data, value, gas }: CallRequest, place: BlockPlace) {
    await vm.evm.journal.checkpoint();
    try {
      const result = await vm.evm.runCall({
        block: blockAt(place),
        caller: addressOf(from),
        origin: addressOf(from),
        ...(to === null ? {} : { to: addressOf(to) }),
        data: hexToBytes(data),
        value,
        gasLimit: gas,
        gasPrice: BASE_FEE,
      });
      return result.execResult;
    } finally {
      await vm.evm.journal.revert();
      await vm.evm.journal.cleanup();
    }
  }

  function outcomeOf({ exceptionError, returnValue }: Awaited<ReturnType<typeof run>>): CallOutcome {
    const data = bytesToHex(returnValue);
    if (exceptionError === undefined) return { type: 'returned', data };
    if (exceptionError.error === 'revert') return { type: 'reverted', data };
    return { type: 'failed', message: exceptionError.error };
  }

  return {
    call: async (request, place) => outcomeOf(await run(request, place)),
    async estimate(request, place) {
      const intrinsic = intrinsicGas(request);
      const most = request.gas < MOST_GAS ? request.gas : MOST_GAS;
      const whole = await run({ ...request, gas: most - intrinsic }, place);
      if (whole.exceptionError !== undefined) return outcomeOf(whole);
      let gas = whole.executionGasUsed;
      while (gas < most - intrinsic) {
        const { exceptionError } = await run({ ...request, gas }, place);
        if (exceptionError === undefined) break;
        gas += gas / GROWTH_DIVISOR + 1n;
      }
      const enough = gas + intrinsic;
      return enough < most ? enough : most;
    },
    async execute(raw, place) {
      const tx = createTxFromRLP(hexToBytes(raw), { common });
      const result = await runTx(vm, { tx, block: blockAt(place) });
      return {
        succeeded: result.execResult.exceptionError === undefined,
        gasUsed: result.totalGasSpent,
        logs: result.receipt.logs.map(([address, topics, data]) => ({
          address: bytesToHex(address),
          topics: topics.map((topic) => bytesToHex(topic)),
          data: bytesToHex(data),
        })),
        contract: result.createdAddress === undefined ? null : bytesToHex(result.createdAddress.bytes),
      };
    },
    async account(address) {
      const account = await stateManager.getAccount(addressOf(address));
      return { balance: account?.balance ?? 0n, nonce: Number(account?.nonce ?? 0n) };
    },
    code: async (address) => bytesToHex(await stateManager.getCode(addressOf(address))),
    storage: async (address, slot) =>
      pad(bytesToHex(await stateManager.getStorage(addressOf(address), hexToBytes(slot))), { size: 32 }),
    setBalance: (address, balance) => stateManager.modifyAccountFields(addressOf(address), { balance }),
    setCode: (address, code) => stateManager.putCode(addressOf(address), hexToBytes(code)),
    setStorage: (address, slot, value) =>
      stateManager.putStorage(addressOf(address), hexToBytes(slot), hexToBytes(trim(value))),
    close: async () => {},
  };
}

function addressOf(address: Hex): Address {
  return new Address(hexToBytes(address));
}
