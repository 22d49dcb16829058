import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { signedData } from '../../../support/signed-quote.ts';
import { type Breakage, isMembers, jsonOf, member } from '../breakage.ts';
import { bodyOf } from '../call.ts';
import { holds, list, read, same, text } from '../expectation.ts';
import {
  changed,
  hashesOf,
  newQuote,
  QUOTES,
  quoteRequest,
  quoteSigner,
  requestQuote,
  signerOf,
} from '../quoting.ts';
import { given, inSection, type Rule, type Target } from '../rule.ts';

/** A signer that replaces the service's, so that only the signed content changes. */
const forger = privateKeyToAccount(`0x${'0f'.repeat(32)}`);

type Signed = { id: string; intentHashes: readonly Hex[]; expiresAt: bigint; chainId: number; name?: string };

/** The forger signs every quote, over other content, and every chain names the forger. */
export function forged(change: (right: Signed) => Signed): Breakage {
  return {
    answer: async (answered, request) => {
      const body = jsonOf(answered.body);
      if (!isMembers(body) || answered.status !== 200) return answered;
      if (/^\/v1\/chains/.test(request.path)) {
        for (const chain of list(body, 'chains')) {
          if (isMembers(chain)) chain.quoteSigner = forger.address;
        }
        return { ...answered, body: JSON.stringify(body) };
      }
      if (!QUOTES.test(request.path)) return answered;
      for (const quote of [body, ...(Array.isArray(body.quotes) ? body.quotes : [])]) {
        if (isMembers(quote))
          quote.signature = await forger.signTypedData(signedData(change(contentsOf(quote))));
      }
      return { ...answered, body: JSON.stringify(body) };
    },
  };
}

function contentsOf(quote: unknown): Signed {
  return {
    id: text(quote, 'id'),
    intentHashes: hashesOf(quote),
    expiresAt: BigInt(String(read(quote, 'expiresAt'))),
    chainId: Number(read(quote, 'source.chainId')),
  };
}

/** Recovers the signer of a quote as that of its chain: the rules differ in their breakage only. */
async function verifies(target: Target): Promise<void> {
  const { chainId } = target.material.route.source;
  same(await signerOf(await newQuote(target), chainId), await quoteSigner(target, chainId), 'signer');
}

export const QUOTE_SIGNATURE_RULES: readonly Rule[] = inSection('Quote signature', [
  {
    id: 'quote signature: signer',
    title: 'a quote is signed by the quoteSigner of its source chain',
    check: verifies,
    breakage: member({ path: /^\/v1\/chains/ }, 'chains.*', 'quoteSigner', forger.address),
  },
  {
    id: 'quote signature: all quotes',
    title: 'with options.allQuotes each quote is signed by the quoteSigner',
    check: async (target) => {
      const { chainId } = target.material.route.source;
      const body = changed(quoteRequest(target), 'options', { allQuotes: true });
      const signer = await quoteSigner(target, chainId);
      for (const quote of list(bodyOf(await requestQuote(target, body)), 'quotes')) {
        same(await signerOf(quote, chainId), signer, 'signer');
      }
    },
    breakage: member({ path: QUOTES }, 'quotes.*', 'expiresAt', (seconds: unknown) => Number(seconds) + 1),
  },
  {
    id: 'quote signature: domain',
    title: 'the domain is ServiceQuoteV1, version 1, on the source chain',
    check: verifies,
    breakage: forged((right) => ({ ...right, name: 'OtherQuoteV1' })),
  },
  {
    id: 'quote signature: id',
    title: 'the id is signed with its prefix',
    check: verifies,
    breakage: forged((right) => ({ ...right, id: right.id.slice('quote:'.length) })),
  },
  {
    id: 'quote signature: intentHashes',
    title: 'the hashes of the quote and of all its steps are signed, each once and in order',
    check: verifies,
    breakage: forged((right) => ({ ...right, intentHashes: [...right.intentHashes, ...right.intentHashes] })),
  },
  {
    id: 'quote signature: expiresAt',
    title: 'expiresAt is signed as Unix seconds',
    check: verifies,
    breakage: forged((right) => ({ ...right, expiresAt: right.expiresAt * 1000n })),
  },
  {
    id: 'quote signature: verification a',
    title: 'a quote from Solana verifies in the same way',
    needs: ['solanaRoute'],
    check: async (target) => {
      const route = given(target, 'solanaRoute');
      const { chainId } = route.source;
      const quote = await newQuote(target, route);
      same(await signerOf(quote, chainId), await quoteSigner(target, chainId), 'signer');
    },
    breakage: forged((right) => ({ ...right, chainId: 1 })),
  },
  {
    id: 'quote signature: verification b',
    title: 'a signature for one source chain does not verify for another',
    check: async (target) => {
      const { source, destination } = target.material.route;
      const quote = await newQuote(target);
      same(read(quote, 'source.chainId'), source.chainId, 'source.chainId');
      same(await signerOf(quote, source.chainId), await quoteSigner(target, source.chainId), 'signer');
      const elsewhere = await signerOf(quote, destination.chainId);
      holds(
        elsewhere !== (await quoteSigner(target, destination.chainId)),
        'found it valid for another chain',
      );
    },
    breakage: forged((right) => ({ ...right, chainId: 10 })),
  },
  {
    id: 'quote signature: what it proves',
    title: 'a quote that is altered, extended or names other intents does not verify',
    check: async (target) => {
      const { chainId } = target.material.route.source;
      const quote = await newQuote(target);
      const signer = await quoteSigner(target, chainId);
      same(await signerOf(quote, chainId), signer, 'signer');
      holds(isMembers(quote), 'expected an object');
      const alterations = {
        id: 'quote:00000000-0000-4000-8000-000000000000',
        expiresAt: Number(quote.expiresAt) + 1,
        intentHash: `0x${'1'.repeat(64)}`,
      };
      for (const [name, value] of Object.entries(alterations)) {
        const found = await signerOf({ ...quote, [name]: value }, chainId);
        holds(found !== signer, `found a quote with another ${name} valid`);
      }
    },
    breakage: member({ path: QUOTES }, '', 'expiresAt', (seconds: unknown) => Number(seconds) + 3600),
  },
]);
