import { z } from 'zod';
import type { EventFilter } from '../../domain/events/filter.ts';
import { walletField } from './addresses.ts';
import { textField, wholeNumberField } from './fields.ts';

/** The keys of a receiver that hold transfers back. What an event does not say holds nothing back. */
export const filterFields = {
  wallets: z
    .array(walletField, { error: 'a list of wallet addresses' })
    .min(1, { error: 'at least one wallet address' })
    .optional()
    .meta({
      description:
        'Only events that come through these wallets of the subscriptions. What a subscription names by itself (an intent, a quote …) passes.',
      label: 'list of addresses',
    }),
  chains: z
    .array(wholeNumberField({ min: 1, max: Number.MAX_SAFE_INTEGER }), { error: 'a list of chain ids' })
    .min(1, { error: 'at least one chain id' })
    .optional()
    .meta({
      description:
        'Only transfers from or to these chains, by id. One of which an end is not known yet passes.',
      label: 'list of numbers',
    }),
  minAmount: textField({
    pattern: /^\d{1,30}(\.\d{1,30})?$/,
    expected: 'an amount in token units, in quotes, like "1000" or "0.5"',
  })
    .optional()
    .meta({
      description:
        'Only transfers that send or deliver at least so much, in token units (`"1000"` is 1,000 USDC). One of an unknown amount or of a token that Intentwatch does not know passes.',
      label: 'text',
    }),
};

/** The filter that the keys mean. */
export function buildFilter(keys: {
  wallets?: string[] | undefined;
  chains?: number[] | undefined;
  minAmount?: string | undefined;
}): EventFilter {
  return {
    wallets: keys.wallets ?? null,
    chains: keys.chains?.map(String) ?? null,
    minAmount: keys.minAmount ?? null,
  };
}
