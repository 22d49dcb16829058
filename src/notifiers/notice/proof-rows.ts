import type { RenderedEvent } from '../../domain/events/event.ts';
import type { DisputeReason, Proof } from '../../domain/proof/proof.ts';
import { describeAmount } from '../../domain/transfers/amounts.ts';
import { chainName, type Directory } from '../../domain/transfers/chains.ts';
import { type Row, rowIf } from './row.ts';

/** The number of moves a mail lists. */
const MOST_MOVES = 5;

/** What readers call the transaction that a proof is about. */
export const PAYMENT_NAMES = { destination: 'delivery', source: 'funding', refund: 'refund' } as const;

const REASONS: { readonly [reason in DisputeReason]: string } = {
  reverted: 'the transaction was reverted',
  'no-transfer': 'the transaction moved none of the token',
  short: 'less was moved than stated',
  'other-recipient': 'it was moved to somebody else',
  'other-intent': 'the payment is that of another transfer',
};

/** What was found of which payment, in a sentence. */
export function proofSentence({ payment, reason, singleSource }: Proof): string {
  const what = reason === undefined ? '' : `: ${REASONS[reason]}`;
  const source = singleSource === true ? ' Only one endpoint could be asked.' : '';
  return `It is about the ${PAYMENT_NAMES[payment]}${what}.${source}`;
}

/** What the endpoints said of a payment. */
export function proofRows({ data: { proof } }: RenderedEvent, directory: Directory): Row[] {
  if (proof === undefined) return [];
  const { payment, chainId, txHash, token = null, stated, checked, block, moved = [], endpoints } = proof;
  const chain = chainName(chainId, directory);
  const amountOf = (amount: string, of: string | null): string =>
    describeAmount({ amount, token: of, chainId }, directory);
  const moves = moved
    .slice(0, MOST_MOVES)
    .map((move) => `${amountOf(move.amount, move.token)} to ${move.to}`);
  const more = moved.length > MOST_MOVES ? [`${moved.length - MOST_MOVES} more`] : [];
  return [
    ...rowIf('Payment', `${PAYMENT_NAMES[payment]} on ${chain}: ${txHash}`),
    ...rowIf('Stated', stated === undefined ? '' : amountOf(stated, token)),
    ...rowIf('Moved', [...moves, ...more].join('; ')),
    ...rowIf('Checked', checked.join(', ')),
    ...rowIf('Block', block === undefined ? '' : `${block.number}, ${block.hash}`),
    ...rowIf('Endpoints', endpoints.join(', ')),
  ];
}
