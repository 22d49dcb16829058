import { expect, test } from 'vitest';
import { intentId, quoteId } from '../../src/domain/subjects/subject.ts';
import { type TransferMove, transferMove } from '../../src/domain/transfers/transfer-move.ts';

const INTENT = intentId('0x01');
const T0 = 1_800_000_000;

/** A snapshot of a transfer in a status, a number of seconds after its funding. */
function at(status: string, seconds: number, pendingSince: number | null = T0) {
  const sourceTx = { chainId: 8453, token: '0x02', amount: '7', txHash: '0xab' };
  const record = { type: 'intent', status, sourceTx };
  return { status, updatedAt: T0 + seconds, pendingSince, record };
}

type Reported = Pick<TransferMove, 'outcome' | 'fillSeconds'> & { settlement: string | null };

const NOTHING: Reported = { outcome: null, fillSeconds: null, settlement: null };

test.each<[string, ReturnType<typeof at> | null, ReturnType<typeof at>, Reported | null]>([
  ['a first sight', null, at('pending', 0), { ...NOTHING, outcome: 'pending' }],
  ['a first sight of what is filled', null, at('filled', 9, null), { ...NOTHING, outcome: 'filled' }],
  ['a fill', at('pending', 0), at('filled', 24), { ...NOTHING, outcome: 'filled', fillSeconds: 24 }],
  [
    'a fill in capitals',
    at('PENDING', 0),
    at('FILLED', 24),
    { ...NOTHING, outcome: 'filled', fillSeconds: 24 },
  ],
  ['a settlement', at('filled', 24), at('settled', 84), { ...NOTHING, settlement: 'settled 60' }],
  [
    'a settlement whose fill was not seen',
    at('pending', 0),
    at('settled', 84),
    { ...NOTHING, outcome: 'filled', fillSeconds: 84 },
  ],
  ['an expiry', at('pending', 0), at('expired', 90), { ...NOTHING, outcome: 'expired', fillSeconds: 90 }],
  [
    'a status that follows it',
    at('expired', 90),
    at('refundable', 99),
    { ...NOTHING, outcome: 'refundable' },
  ],
  ['a refund', at('refundable', 99), at('refunded', 120), { ...NOTHING, outcome: 'refunded' }],
  [
    'a fill that did not last',
    at('filled', 24),
    at('refundable', 60),
    { outcome: 'refundable', fillSeconds: null, settlement: 'failed 36' },
  ],
  [
    'a funding that was not seen',
    at('pending', 0, null),
    at('filled', 24),
    { ...NOTHING, outcome: 'filled' },
  ],
  [
    'times the wrong way round',
    at('pending', 0, T0 + 50),
    at('filled', 24),
    { ...NOTHING, outcome: 'filled' },
  ],
  ['a status nobody foresaw', at('pending', 0), at('teleported', 9), { ...NOTHING, fillSeconds: 9 }],
  ['the same status', at('pending', 0), at('pending', 5), null],
  ['a step back', at('filled', 24), at('pending', 30), null],
  ['an amount unknown for a while', at('unknown', 0), at('pending', 30), null],
])('%s', (_, before, after, reported) => {
  const move = transferMove(INTENT, before, after);
  const { outcome, fillSeconds, settlement } = move ?? NOTHING;
  const shown =
    settlement === null || typeof settlement === 'string'
      ? null
      : `${settlement.outcome} ${settlement.seconds}`;
  expect(move === null ? null : { outcome, fillSeconds, settlement: shown }).toEqual(reported);
});

test('states the sent amount and the chains; a quote or job states nothing, for it names the transfer', () => {
  expect(transferMove(INTENT, null, at('pending', 0))).toMatchObject({
    route: '8453:*',
    sent: { chainId: '8453', token: '0x02', amount: '7' },
  });
  expect(transferMove(quoteId('0b'), null, at('active', 0))).toBe(null);
});
