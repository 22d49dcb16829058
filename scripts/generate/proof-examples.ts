import type { Event } from '../../src/domain/events/event.ts';
import { makeEvent } from '../../src/domain/events/make-event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Proof } from '../../src/domain/proof/proof.ts';
import type { ProofOutcome } from '../../src/domain/proof/proof-flags.ts';

/** The delivery of a transfer, as its record states it. */
export type Delivery = { chainId: number; txHash: string; token: string; amount: string };

/** One event per outcome of a delivery's check. `updatedAt` is in Unix seconds. */
export function proofEvents(
  subject: string,
  {
    record,
    delivery,
    recipient,
    updatedAt,
  }: { record: JsonObject; delivery: Delivery; recipient: string; updatedAt: number },
): Event[] {
  const about = {
    payment: 'destination',
    chainId: String(delivery.chainId),
    txHash: delivery.txHash,
    token: delivery.token,
    stated: delivery.amount,
  } as const;
  const block = { number: '300112233', hash: `0x${'b1'.repeat(32)}`, timestamp: updatedAt - 2 };
  const moved = (amount: string) => ({
    token: delivery.token,
    from: '0x8617e340b3d01fa5f11f306f4090fd50e238070d',
    to: recipient,
    amount,
    index: 12,
  });
  const endpoints = ['own', 'other'];
  const proofs: [ProofOutcome, Proof][] = [
    [
      'verified',
      {
        ...about,
        checked: ['chain', 'success', 'token', 'amount', 'recipient', 'exclusive', 'final'],
        block,
        moved: [moved(delivery.amount)],
        endpoints,
      },
    ],
    [
      'disputed',
      {
        ...about,
        checked: ['chain', 'success', 'token', 'final'],
        reason: 'short',
        block,
        moved: [moved('1000000')],
        endpoints,
      },
    ],
    ['unproven', { ...about, checked: ['chain'], endpoints }],
  ];
  return proofs.map(([outcome, proof], index) =>
    makeEvent({
      subject: { kind: 'intent', id: subject },
      sequence: 3 + index,
      epoch: 1,
      transition: {
        type: `intent.${outcome}`,
        status: 'filled',
        previousStatus: 'filled',
        changes: [],
        skipped: false,
        regression: false,
      },
      record,
      updatedAt,
      proof,
      nowMs: (updatedAt + 1_200) * 1_000,
    }),
  );
}
