import { z } from 'zod';
import { isJsonObject, type JsonValue } from '../../domain/json.ts';
import { foldHex } from '../../domain/subjects/subject.ts';
import type { AddedChain, AddedToken } from '../../domain/transfers/chains.ts';
import type { CheckedChain } from '../config.ts';
import { flagField, mapping, textField, wholeNumberField } from '../fields/fields.ts';
import { httpUrl } from '../fields/http.ts';
import { type Fault, findRepeated, member } from '../file/errors.ts';
import { buildChecks, CHAIN_CHECKS, checkChecks } from './chain.ts';

const EXPLORER = 'an http(s) URL with {txHash}, like https://explorer.example.com/tx/{txHash}';

const chainIdField = wholeNumberField({ min: 1, max: Number.MAX_SAFE_INTEGER }).meta({
  description: 'The chain id, as the upstream names the chain.',
});

const explorerField = z
  .string({ error: EXPLORER })
  .refine((text) => text.split('{txHash}').length === 2 && isWebUrl(text.replace('{txHash}', 'x')), {
    error: EXPLORER,
  });

function isWebUrl(text: string): boolean {
  const url = /\s/.test(text) ? null : httpUrl(text);
  return url !== null && url.username === '' && url.password === '';
}

const chainSchema = mapping({
  name: textField({
    // No control characters: subject lines of mails contain the name.
    pattern: /^[^\s\p{Cc}]([^\p{Cc}]{0,38}[^\s\p{Cc}])?$/u,
    expected: 'a name of 1 to 40 characters',
  })
    .optional()
    .meta({
      description:
        'What readers call it. Left out: the name that the upstream lists, the built-in one, or `chain` and the id.',
    }),
  explorer: explorerField.optional().meta({
    description:
      'The address of the page of a transaction, with `{txHash}`. Left out: the built-in explorer, if there is one.',
    label: 'URL',
  }),
  ...CHAIN_CHECKS,
}).meta({
  description:
    'Chains by their ids. Names and explorers are for mails and messages, beside those that the upstream lists and the built-in ones; what is named here counts more. With endpoints, payments on the chain are checked.',
  example: {
    98866: { name: 'Plume', explorer: 'https://explorer.plume.org/tx/{txHash}' },
    8453: {
      explorer: 'https://base.blockscout.com/tx/{txHash}',
      rpc: [
        { name: 'own', url: '${BASE_RPC_URL}' },
        { name: 'other', url: '${BASE_OTHER_RPC_URL}', requestsPerSecond: 5 },
      ],
      finality: 'finalized',
    },
  },
});

const tokenSchema = mapping({
  chainId: chainIdField,
  address: textField({
    pattern: /^[0-9A-Za-z]{20,70}$/,
    expected: 'an address of a token, in quotes: 0x and 40 hex digits, or base58',
  }).meta({ description: "The token's address on that chain, in quotes.", label: 'address' }),
  symbol: textField({
    pattern: /^[^\s\p{Cc}]{1,16}$/u,
    expected: 'a symbol of 1 to 16 characters without spaces',
  }).meta({ description: 'What readers call it, like `USDC`.' }),
  decimals: wholeNumberField({ min: 0, max: 77 }).meta({
    description: 'How many digits of an amount in base units are behind the point.',
  }),
  checkable: flagField().prefault(true).meta({
    description:
      'Set to `false` for a token whose balances change by themselves or that takes a fee: its logs do not state what is received, so payments in it are not checked.',
  }),
}).meta({
  description:
    'Tokens whose amounts are reported in token units, beside those that the upstream lists and common stablecoins, which are built in; what is named here counts more. Amounts of all others are reported in base units, and so are those of a token of which the upstream reports other decimals than are built in, or than it reported before.',
  example: [
    {
      chainId: 8453,
      address: '0xd9aaec86b65d86f6a7b5b1b0c42ffa531710b6ca',
      symbol: 'USDbC',
      decimals: 6,
    },
  ],
});

const CHAIN_ID = 'chain ids as the upstream names them, like 8453';

export const chainsSchema = z
  .record(
    z.string().refine((id) => /^[1-9]\d*$/.test(id) && Number.isSafeInteger(Number(id)), { error: CHAIN_ID }),
    chainSchema,
    { error: ({ code }) => (code === 'invalid_key' ? CHAIN_ID : `a mapping of ${CHAIN_ID}`) },
  )
  .prefault({})
  .meta({
    description: 'Names and explorers of chains, and the endpoints by which payments are checked.',
    label: 'mapping of chain ids',
  });

export const tokensSchema = z.array(tokenSchema, { error: 'a list of tokens' }).prefault([]).meta({
  description: 'Symbols and decimals of tokens.',
  label: 'list of mappings',
});

/** Builds the names from the parsed sections. */
export function buildNames(parsed: {
  chains: z.output<typeof chainsSchema>;
  tokens: z.output<typeof tokensSchema>;
}): {
  chains: AddedChain[];
  tokens: AddedToken[];
  checkedChains: CheckedChain[];
  uncheckedTokens: { chainId: string; address: string }[];
} {
  const chains = Object.entries(parsed.chains);
  const tokens = parsed.tokens.map(({ chainId, ...token }) => ({ chainId: String(chainId), ...token }));
  return {
    chains: chains.map(([chainId, { name = null, explorer = null }]) => ({ chainId, name, explorer })),
    tokens: tokens.map(({ checkable: _, ...token }) => token),
    checkedChains: chains.flatMap(([chainId, chain]) => buildChecks(chainId, chain)),
    uncheckedTokens: tokens.flatMap(({ chainId, address, checkable }) =>
      checkable ? [] : [{ chainId, address }],
    ),
  };
}

/** Checks the items of both sections against each other. */
export function checkNames(tree: JsonValue): Fault[] {
  const chainOf = (item: JsonValue): string | null => {
    const chainId = member(item, 'chainId');
    return typeof chainId === 'number' ? String(chainId) : null;
  };
  const chains = member(tree, 'chains');
  const tokenOf = (item: JsonValue): string | null => {
    const [chain, address] = [chainOf(item), member(item, 'address')];
    return chain === null || typeof address !== 'string' ? null : `${chain} ${foldHex(address)}`;
  };
  return [
    ...Object.entries(isJsonObject(chains) ? chains : {}).flatMap(([chainId, chain]) =>
      checkChecks(chainId, chain).map((finding) => ({
        ...finding,
        path: ['chains', chainId, ...finding.path],
      })),
    ),
    ...findRepeated(member(tree, 'tokens'), { at: ['tokens'], expected: 'each token once', keyOf: tokenOf }),
  ];
}
