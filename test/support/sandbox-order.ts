import { z } from 'zod';
import type { Lie } from '../../sandbox/chains/lies.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';

const USDC: Readonly<Record<number, string>> = {
  1: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  10: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85',
  8453: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  42161: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
  1399811149: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
};

const USDT_OPTIMISM = '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58';

/** The address of USDC on a chain of the sandbox. Throws where it has none. */
export function usdcOn(chainId: number): string {
  const address = USDC[chainId];
  if (address === undefined) throw new Error(`no USDC on chain ${chainId}`);
  return address;
}

/** A transfer to be made at a sandbox: of USDC, between two chains; `swapsTo` another token, on Optimism alone. */
export type SandboxOrder = {
  from?: number;
  to?: number;
  funder?: string;
  recipient?: string;
  amount?: string;
  fate?: 'settled' | 'late-details' | 'refunded' | 'failed';
  lie?: Lie;
  delivered?: string;
  swapsTo?: 'USDT';
  sourceTx?: string;
  states?: { txHash: string; chainId?: number; token?: string };
};

const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';

const quoteSchema = z.looseObject({ id: z.string() });
const fundedSchema = z.object({ intentHash: z.string(), sourceTxHash: z.string() });

/** Requests a quote of a transfer from a sandbox; returns the answer as it came. */
export async function quoteAt(
  sandbox: Pick<Sandbox, 'url' | 'apiKey'>,
  order: SandboxOrder = {},
): Promise<z.infer<typeof quoteSchema>> {
  const { from = 8453, to = 10, swapsTo, funder = WALLET, recipient = WALLET, amount = '100000000' } = order;
  const response = await fetch(`${sandbox.url}/v1/quotes`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': sandbox.apiKey },
    body: JSON.stringify({
      type: 'exact-in',
      dappId: 'test',
      source: { chainId: from, token: usdcOn(from), funder, amount },
      destination: { chainId: to, token: swapsTo === 'USDT' ? USDT_OPTIMISM : usdcOn(to), recipient },
    }),
  });
  if (response.status !== 200)
    throw new Error(`a quote was answered ${response.status}: ${await response.text()}`);
  return quoteSchema.parse(await response.json());
}

/** Makes a sandbox see the transaction that funds a quote. */
export async function fundAt(
  sandbox: Pick<Sandbox, 'controlUrl'>,
  { quoteId, order = {} }: { quoteId: string; order?: SandboxOrder },
): Promise<z.infer<typeof fundedSchema> | 'expired'> {
  const { fate, lie, delivered, sourceTx, states } = order;
  const response = await fetch(`${sandbox.controlUrl}/fund`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ quoteId, fate, lie, delivered, sourceTx, states }),
  });
  if (response.status === 410) return 'expired';
  if (response.status !== 200)
    throw new Error(`funding was answered ${response.status}: ${await response.text()}`);
  return fundedSchema.parse(await response.json());
}

/** Requests a quote of a transfer from a sandbox and funds it. */
export async function orderAt(
  sandbox: Pick<Sandbox, 'url' | 'apiKey' | 'controlUrl'>,
  order: SandboxOrder = {},
): Promise<z.infer<typeof fundedSchema>> {
  for (;;) {
    const { id: quoteId } = await quoteAt(sandbox, order);
    const funded = await fundAt(sandbox, { quoteId, order });
    // On a slow machine a quote expires before it is funded.
    if (funded !== 'expired') return funded;
  }
}
