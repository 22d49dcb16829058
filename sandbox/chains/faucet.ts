import { type Hex, hexToBigInt, isHex } from 'viem';
import { z } from 'zod';
import { balanceSlot, tokenAddress } from '../contracts/genesis.ts';
import { TOKENS } from '../world/chains.ts';
import { lookupKey } from '../world/identifiers.ts';
import type { Chains } from './chains.ts';

const COIN = 10n ** 18n;
const TOKEN_UNITS = 1_000_000_000n;
const MOST_COINS = 1_000n * COIN;
const MOST_TOKEN_UNITS = 1_000_000_000_000n;

/** Most gifts of one sandbox: each can add an account to the state. */
const MOST_GIFTS = 10_000;

const hexAddress = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, { error: 'expected 0x and 40 hex digits' })
  .transform(lookupKey)
  .pipe(z.custom<Hex>((text) => isHex(text)));

/** Body of `POST /faucet`: without a token it gives the chain's coin, by default 1, or 1,000 of a token. */
export const faucetSchema = z.strictObject({
  chainId: z.int(),
  address: hexAddress,
  token: hexAddress.optional(),
  /** In wei, or base units of the token. */
  amount: z
    .string()
    .regex(/^[1-9]\d{0,30}$/, { error: 'expected a whole number above 0, as text' })
    .transform(BigInt)
    .optional(),
});

/** A gift, with the balance after it as text; or the reason for none. */
export type Gift =
  | { type: 'given'; balance: string }
  | { type: 'refused'; statusCode: 400 | 429; message: string };

export type Faucet = (wanted: z.infer<typeof faucetSchema>) => Promise<Gift>;

/** Creates the faucet of the EVM chains. */
export function createFaucet(chains: Chains): Faucet {
  let given = 0;
  return async ({ chainId, address, token, amount }) => {
    const refuse = (statusCode: 400 | 429, message: string): Gift => ({
      type: 'refused',
      statusCode,
      message,
    });
    const machine = chains.all.get(chainId)?.machine ?? null;
    if (machine === null) return refuse(400, `found chain ${chainId}, expected an EVM chain of GET /chains`);
    const isListed = TOKENS.some((one) => one.chainId === chainId && tokenAddress(one) === token);
    if (token !== undefined && !isListed) {
      return refuse(400, `found token ${token}, expected one of chain ${chainId} in GET /v1/tokens`);
    }
    const most = token === undefined ? MOST_COINS : MOST_TOKEN_UNITS;
    const wanted = amount ?? (token === undefined ? COIN : TOKEN_UNITS);
    if (wanted > most) return refuse(400, `amount: found ${wanted}, expected at most ${most}`);
    if (given >= MOST_GIFTS) return refuse(429, `the faucet has given ${MOST_GIFTS} times, and is empty`);
    given += 1;
    await machine.give({ token: token ?? null, owner: address, amount: wanted });
    const balance = await machine.read(async (engine) =>
      token === undefined
        ? (await engine.account(address)).balance
        : hexToBigInt(await engine.storage(token, balanceSlot(address))),
    );
    return { type: 'given', balance: balance.toString() };
  };
}
