import { z } from 'zod';
import { member } from '../breakage.ts';
import { bodyOf, call } from '../call.ts';
import { conforms, holds, list, same, text } from '../expectation.ts';
import { memberRules } from '../member-rules.ts';
import { changed, entriesOf, newQuote, QUOTES, quoteRequest, requestQuote } from '../quoting.ts';
import { inSection, type Rule } from '../rule.ts';
import {
  baseUnits,
  chainId,
  evmAddress,
  intentHash,
  nonEmpty,
  prefixedQuote,
  unixSeconds,
} from '../shape.ts';

const typed = z.looseObject({ type: nonEmpty });

export const QUOTE_RULES: readonly Rule[] = inSection('v1 quote object', [
  ...memberRules({
    prefix: 'quote',
    records: async (target) => [await newQuote(target)],
    on: { path: QUOTES, status: 200 },
    place: '',
    rows: [
      { name: 'id', title: 'is quote:<uuid>', schema: prefixedQuote, required: true },
      {
        name: 'type',
        title: 'is exact-in, exact-out or custom',
        schema: z.enum(['exact-in', 'exact-out', 'custom']),
        required: true,
      },
      {
        name: 'signature',
        title: 'is hex',
        schema: z.string().regex(/^0x([0-9a-fA-F]{2})+$/),
        required: true,
      },
      { name: 'expiresAt', title: 'is Unix seconds', schema: unixSeconds, required: true, broken: String },
      { name: 'intentHash', title: 'is a hash', schema: intentHash, required: true },
      { name: 'source.chainId', title: 'is an integer', schema: chainId, required: true },
      { name: 'source.funder', title: 'is the funder', schema: evmAddress, required: true },
      { name: 'destination.amountOut', title: 'is base units', schema: baseUnits, required: true },
      { name: 'destination.minAmountOut', title: 'is base units', schema: baseUnits, required: true },
      { name: 'fees', title: 'each have a type', schema: z.array(typed), required: true },
      {
        name: 'steps',
        title: 'each have a type and intents with a hash and a role',
        schema: z.array(
          typed.extend({ intents: z.array(z.looseObject({ intentHash, role: nonEmpty })).min(1) }),
        ),
        required: true,
        broken: [{ type: 'BRIDGE', intents: [{ intentHash: `0x${'1'.repeat(64)}` }] }],
      },
      { name: 'execution.transaction', title: 'has a type', schema: typed, required: true },
    ],
  }),
  {
    id: 'quote: quotes',
    title: 'with options.allQuotes there is a list of quotes, each with its own signature',
    check: async (target) => {
      const body = changed(quoteRequest(target), 'options', { allQuotes: true });
      const quotes = list(bodyOf(await requestQuote(target, body)), 'quotes');
      holds(quotes.length > 0, 'found no quotes');
      same(new Set(quotes.map((quote) => text(quote, 'signature'))).size, quotes.length, 'signatures');
    },
    breakage: member({ path: QUOTES }, 'quotes.*', 'signature', `0x${'2'.repeat(130)}`),
  },
  {
    id: 'quote: quoteSigner',
    title: 'the entry of every chain names the address that signs its quotes',
    check: async (target) => {
      const chains = entriesOf(bodyOf(await call(target, { path: '/v1/chains' })));
      holds(chains.length > 0, 'found no chains');
      for (const chain of chains) conforms(z.looseObject({ quoteSigner: evmAddress }), chain, 'chain');
    },
    breakage: member({ path: /^\/v1\/chains/ }, 'chains.*', 'quoteSigner', undefined),
  },
]);
