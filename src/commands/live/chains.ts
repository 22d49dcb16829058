import { createChainReaders, hostOf } from '../../chains/chain-readers.ts';
import type { ChainEndpoint, CheckedChain, Config } from '../../config/config.ts';
import { chainFamily } from '../../domain/proof/families.ts';
import type { Reading } from '../../domain/proof/reading.ts';
import { chainName, extendDirectory } from '../../domain/transfers/chains.ts';
import type { Check, Finding } from './finding.ts';

/** Transactions that nobody has made: an endpoint that works does not know them. */
const NOBODYS_EVM_TX = `0x${'0'.repeat(64)}`;
const NOBODYS_SOLANA_TX = '1'.repeat(64);

/** True when each RPC endpoint is of its chain, knows what is final there, and can be asked for a transaction. */
export function chainChecks(config: Config): Check[] {
  const directory = extendDirectory(config);
  return config.checkedChains.flatMap((chain) =>
    chain.endpoints.map((endpoint) => ({
      name: `RPC endpoint ${endpoint.name} of ${chainName(chain.chainId, directory)}`,
      ask: (signal) => askEndpoint(chain, endpoint, signal),
    })),
  );
}

/** One endpoint gives one reading. */
async function askEndpoint(
  chain: CheckedChain,
  endpoint: ChainEndpoint,
  signal: AbortSignal,
): Promise<Omit<Finding, 'name'>> {
  const readers = createChainReaders([{ ...chain, endpoints: [endpoint] }], { onCall: () => undefined });
  const reader = readers.get(chain.chainId);
  const nobodys = chainFamily(chain.chainId) === 'solana' ? NOBODYS_SOLANA_TX : NOBODYS_EVM_TX;
  try {
    const [reading] = (await reader?.read(nobodys, { signal })) ?? [];
    if (reading === undefined) return { ok: false, detail: 'found no reader of this chain, expected one' };
    if (reading.outcome === 'failed') return { ok: false, detail: reading.reason };
    return { ok: true, detail: `is of this chain, ${finalityOf(reading)}${limitOf(chain)}` };
  } finally {
    await reader?.close();
  }
}

/** What endpoints of one host cannot do, however many they are. */
function limitOf({ endpoints }: CheckedChain): string {
  return new Set(endpoints.map(hostOf)).size > 1
    ? ''
    : '; nothing is disputed without an endpoint on another host';
}

function finalityOf(reading: Exclude<Reading, { outcome: 'failed' }>): string {
  if (reading.head === null) return 'where no block is final yet';
  const { number, timestamp } = reading.head;
  const isBehind = reading.outcome === 'absent' && !reading.isSynced;
  const at = new Date(timestamp * 1_000).toISOString().replace('.000', '');
  return `final up to block ${number} of ${at}${isBehind ? ', and still catching up' : ''}`;
}
