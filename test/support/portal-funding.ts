import { concat, type Hex, isHex } from 'viem';
import { z } from 'zod';
import type { ClientLibrary } from './client-libraries.ts';

const REWARD = '(uint64, address, address, uint256, (address, uint256)[])';
const ROUTE = '(bytes32, uint64, address, uint256, (address, uint256)[], (address, bytes, uint256)[])';
/** The Portal's function that publishes an intent and funds it. */
export const PUBLISH_AND_FUND = `function publishAndFund(uint64, bytes, ${REWARD}, bool)`;
const TRANSFER = 'function transfer(address, uint256)';

const hex = z.custom<Hex>((value) => isHex(value));
const amounts = z.array(z.tuple([hex, z.bigint()]));
const rewardSchema = z.tuple([z.bigint(), hex, hex, z.bigint(), amounts]);
const fundingSchema = z.tuple([z.bigint(), hex, rewardSchema, z.boolean()]);
const routeSchema = z.tuple([
  z.tuple([hex, z.bigint(), hex, z.bigint(), amounts, z.array(z.tuple([hex, hex, z.bigint()]))]),
]);
const transferSchema = z.tuple([hex, z.bigint()]);

/** Terms of a route: the chain that it ends on is not in its bytes. */
export type RouteTerms = {
  deadline: bigint;
  tokens: [Hex, bigint][];
  pays: { token: Hex; recipient: Hex; amount: bigint }[];
};

/** The funding that a transaction does, as a client decodes it before it sends it. */
export type Funding = {
  intentHash: Hex;
  destination: bigint;
  route: RouteTerms;
  reward: { deadline: bigint; creator: Hex; tokens: [Hex, bigint][] };
  allowPartial: boolean;
};

/** Decodes the data of a call of the Portal's `publishAndFund`, and hashes its intent as the Portal does. */
export function fundingOf(library: ClientLibrary, data: Hex): Funding {
  const [destination, route, reward, allowPartial] = fundingSchema.parse(
    library.decodeCall(PUBLISH_AND_FUND, data),
  );
  const [deadline, creator, , , tokens] = reward;
  const chain = `0x${destination.toString(16).padStart(16, '0')}` as const;
  const rewardHash = library.keccak256(library.encode([REWARD], [reward]));
  return {
    intentHash: library.keccak256(concat([chain, library.keccak256(route), rewardHash])),
    destination,
    route: routeOf(library, route),
    reward: { deadline, creator, tokens },
    allowPartial,
  };
}

/** Decodes the bytes of a route that ends on an EVM chain. */
export function routeOf(library: ClientLibrary, encoded: Hex): RouteTerms {
  const [[, deadline, , , tokens, calls]] = routeSchema.parse(library.decode([ROUTE], encoded));
  const pays = calls.map(([token, data]) => {
    const [recipient, amount] = transferSchema.parse(library.decodeCall(TRANSFER, data));
    return { token, recipient, amount };
  });
  return { deadline, tokens, pays };
}
