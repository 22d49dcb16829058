import type { SubjectKind } from '../../domain/subjects/subject.ts';
import { type Pricing, pollPrice, pollRecord } from '../../pollers/poll-subject.ts';
import type { PollStart } from '../../store/poll-start.ts';
import type { PollParts } from './poll-parts.ts';
import { recordAdapter } from './poll-record.ts';
import { transactionAdapter } from './poll-transaction.ts';
import { pageAdapter, walletAdapter } from './poll-wallet.ts';
import type { Adapter } from './polled.ts';
import type { QuoteVerification } from './quote-verification.ts';

/** By the kind of a subject, how a poll of it is made. */
export type Adapters = Readonly<Record<SubjectKind, (start: PollStart) => Adapter>>;

/** How each kind is polled. `quotes` verifies imported quotes, `pricing` says who is asked for the prices of routes. */
export function adaptersOf(
  parts: PollParts,
  { quotes, pricing }: { quotes: QuoteVerification; pricing: Pricing },
): Adapters {
  const { client } = parts;
  const record = recordAdapter(parts, ({ subject }, signal) => pollRecord(client, subject, signal));
  const transaction = transactionAdapter(parts, ({ subject }, signal) => pollRecord(client, subject, signal));
  const route = recordAdapter(parts, (target, signal) => pollPrice(pricing, target, signal));
  const wallet = walletAdapter(parts);
  return {
    intent: () => record,
    gasless: () => record,
    vault: () => record,
    quote: ({ imported }) => (quotes.isDue(imported) ? quotes : record),
    'by-tx': () => transaction,
    route: () => route,
    wallet: (start) => (start.sweep === null ? wallet : pageAdapter(parts, start)),
    'deposit-address': () => record,
    other: () => record,
  };
}
