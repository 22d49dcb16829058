import type { z } from 'zod';
import type { DisputeReason } from '../../domain/proof/proof.ts';
import type { Move, Reading } from '../../domain/proof/reading.ts';
import type { Statement } from '../../domain/proof/statement.ts';
import type { UncheckedReason, Verdict, WaitingReason } from '../../domain/proof/verdict.ts';
import { describeAmount } from '../../domain/transfers/amounts.ts';
import { chainName, type Directory } from '../../domain/transfers/chains.ts';
import { printableLine } from '../../notifiers/printable.ts';
import { utcTime } from '../table.ts';
import type { CheckedPayment } from './check-payment.ts';
import type { FoundTransfer } from './find-transfer.ts';
import type { VERIFIED_PAYMENTS } from './verified-json.ts';

const DISPUTED: Readonly<Record<DisputeReason, string>> = {
  reverted: 'the transaction failed',
  'no-transfer': 'the token did not move in it',
  short: 'less moved than stated',
  'other-recipient': 'somebody else received it',
  'other-intent': 'it is the payment of another transfer',
};

const WAITING: Readonly<Record<WaitingReason, string>> = {
  'not-found': 'no endpoint has the transaction yet',
  'not-final': 'its block is not final yet',
  disagreement: 'the endpoints do not agree',
  unreachable: 'no endpoint has answered',
  'one-endpoint': 'only one host has reported it as final, and one is not enough',
  claimed: 'its log proved another transfer, which is being checked anew',
  funding: 'what funded it is not checked yet',
};

const UNCHECKED: Readonly<Record<UncheckedReason, string>> = {
  'native-token': 'the chain’s own money moves without a log',
  'token-unlisted': 'the token is neither one of the config (tokens) nor of the packaged list',
  'token-not-checkable': 'the token’s logs do not say what is received',
  ambiguous: 'several moves may be meant',
  'chain-not-checkable': 'chains of this kind are not checked',
  'not-stated': 'the upstream does not state enough',
  'no-fulfilment': 'the pinned contract logged nothing in it: is its address right?',
  'too-old': 'its block is older than the transfer',
};

/** What was checked and found, as lines. */
export function verifiedText({
  found,
  payments,
  otherTransfers,
  calls,
  directory,
}: {
  found: FoundTransfer;
  payments: readonly CheckedPayment[];
  directory: Directory;
} & Pick<z.infer<typeof VERIFIED_PAYMENTS>, 'otherTransfers' | 'calls'>): string {
  const asked = Object.entries(calls).map(([name, count]) => `${name} ${count}`);
  return [
    `${line(found.subject)}, as the ${found.reportedBy} tells it`,
    ...(payments.length === 0
      ? ['  it states no payment yet']
      : payments.flatMap((payment) => paymentLines(payment, directory))),
    '',
    otherTransfers.looked
      ? 'other transfers: looked at, in the Redis of the config'
      : line(`other transfers: NOT LOOKED AT, a log may have proved another one (${otherTransfers.reason})`),
    `calls: ${asked.length === 0 ? 'none' : asked.join(', ')}`,
  ].join('\n');
}

function paymentLines({ statement, verdict, readings }: CheckedPayment, directory: Directory): string[] {
  const { payment, chainId, txHash } = statement;
  const proof = 'proof' in verdict ? verdict.proof : null;
  const rows: [string, string][] = [
    ['stated', statedText(statement, directory)],
    ['found', readings === null ? NO_ENDPOINTS : verdictText(verdict)],
    ...(proof === null ? [] : [['checked', proof.checked.join(', ')] satisfies [string, string]]),
    ...(proof?.moved ?? []).map((move): [string, string] => [
      'moved',
      moveText(move, { chainId, directory }),
    ]),
    ...(readings ?? []).map((reading): [string, string] => [reading.endpoint, readingText(reading)]),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    '',
    line(`${payment} on ${chainName(chainId, directory)}: ${txHash}`),
    ...rows.map(([name, text]) => `  ${name.padEnd(width)}  ${line(text)}`),
  ];
}

const NO_ENDPOINTS = 'not checked: the config has no endpoints of this chain';

function statedText({ amount, token, chainId, recipients }: Statement, directory: Directory): string {
  const what = amount === null ? 'no amount' : describeAmount({ amount, token, chainId }, directory);
  return recipients.length === 0 ? `${what}; to whom is not known` : `${what} to ${recipients.join(' or ')}`;
}

function verdictText(verdict: Verdict): string {
  switch (verdict.outcome) {
    case 'verified':
      return verdict.proof.singleSource === true ? 'VERIFIED, by one host alone' : 'VERIFIED';
    case 'disputed': {
      const { reason } = verdict.proof;
      return reason === undefined ? 'DISPUTED' : `DISPUTED, ${reason}: ${DISPUTED[reason]}`;
    }
    case 'unproven':
      return 'UNPROVEN: an hour after finality two endpoints do not have the transaction';
    case 'waiting':
      return `not reported (${verdict.because}): ${WAITING[verdict.because]}`;
    case 'unchecked':
      return `not checked (${verdict.because}): ${UNCHECKED[verdict.because]}`;
  }
}

function moveText(
  { amount, token, from, to, index }: Move,
  { chainId, directory }: { chainId: string; directory: Directory },
): string {
  const sender = from === null ? '' : ` from ${from}`;
  return `${describeAmount({ amount, token, chainId }, directory)}${sender} to ${to} (${from === null ? 'account' : 'log'} ${index})`;
}

function readingText(reading: Reading): string {
  switch (reading.outcome) {
    case 'found': {
      const { block, head, isFinal, succeeded } = reading;
      const final = isFinal ? 'final' : `not final: that is block ${head.number}`;
      return `block ${block.number} of ${utcTime(block.timestamp)}, ${succeeded ? 'succeeded' : 'failed'}, ${final}`;
    }
    case 'absent':
      return `does not have it${reading.head === null ? '' : `; final is block ${reading.head.number} of ${utcTime(reading.head.timestamp)}`}`;
    case 'failed':
      return reading.reason;
  }
}

/** One harmless line: what stands in it comes from outside. */
function line(text: string): string {
  return printableLine(text, 500);
}
