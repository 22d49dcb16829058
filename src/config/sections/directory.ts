import { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import { foldHex } from '../../domain/subjects/subject.ts';
import type { AddedChain, AddedToken } from '../../domain/transfers/chains.ts';
import { mapping, textField, wholeNumberField } from '../fields/fields.ts';
import { httpUrl } from '../fields/urls.ts';
import { type Finding, findRepeated, member } from '../file/tree.ts';

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
  chainId: chainIdField,
  name: textField({
    // No control characters: the name stands in the subject lines of mails.
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
      'Where a transaction can be looked at, with `{txHash}`. Left out: the built-in explorer, if there is one.',
    label: 'URL',
  }),
}).meta({
  description:
    'Names and explorers of chains for mails and messages, beside those that the upstream lists and the built-in ones; what stands here counts more.',
  example: [
    { chainId: 98866, name: 'Plume', explorer: 'https://explorer.plume.org/tx/{txHash}' },
    { chainId: 8453, explorer: 'https://base.blockscout.com/tx/{txHash}' },
  ],
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
    description: 'How many digits of an amount in base units stand behind the point.',
  }),
}).meta({
  description:
    'Tokens whose amounts are told in token units, beside those that the upstream lists and common stablecoins, which are built in; what stands here counts more. Amounts of all others are told in base units, and so are those of a token of which the upstream says other decimals than are built in, or than it said before.',
  example: [
    {
      chainId: 8453,
      address: '0xd9aaec86b65d86f6a7b5b1b0c42ffa531710b6ca',
      symbol: 'USDbC',
      decimals: 6,
    },
  ],
});

/** The `chains` section. */
export const chainsSchema = z.array(chainSchema, { error: 'a list of chains' }).prefault([]).meta({
  description: 'Names and explorers of chains.',
  label: 'list of mappings',
});

/** The `tokens` section. */
export const tokensSchema = z.array(tokenSchema, { error: 'a list of tokens' }).prefault([]).meta({
  description: 'Symbols and decimals of tokens.',
  label: 'list of mappings',
});

/** Both sections as the rest of the program sees them. */
export function buildNames(parsed: {
  chains: z.output<typeof chainsSchema>;
  tokens: z.output<typeof tokensSchema>;
}): { chains: AddedChain[]; tokens: AddedToken[] } {
  return {
    chains: parsed.chains.map(({ chainId, name = null, explorer = null }) => ({
      chainId: String(chainId),
      name,
      explorer,
    })),
    tokens: parsed.tokens.map(({ chainId, ...token }) => ({ chainId: String(chainId), ...token })),
  };
}

/** What the items of both sections say about each other. */
export function checkNames(tree: JsonValue): Finding[] {
  const chainOf = (item: JsonValue): string | null => {
    const chainId = member(item, 'chainId');
    return typeof chainId === 'number' ? String(chainId) : null;
  };
  const tokenOf = (item: JsonValue): string | null => {
    const [chain, address] = [chainOf(item), member(item, 'address')];
    return chain === null || typeof address !== 'string' ? null : `${chain} ${foldHex(address)}`;
  };
  return [
    ...findRepeated(member(tree, 'chains'), { at: ['chains'], expected: 'each chain once', keyOf: chainOf }),
    ...findRepeated(member(tree, 'tokens'), { at: ['tokens'], expected: 'each token once', keyOf: tokenOf }),
  ];
}
