import { resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import type { z } from 'zod';
import { createChainReaders, type EndpointCall } from '../chains/chain-readers.ts';
import { CONFIG_DEFAULT } from '../client/address.ts';
import type { Config } from '../config/config.ts';
import { walletField } from '../config/fields/addresses.ts';
import { loadConfig } from '../config/file/load.ts';
import { type Move, NOT_TIED, type ProofReason, type TxState } from '../domain/proof/proof.ts';
import { type Statement, statementsOf } from '../domain/proof/statement.ts';
import type { UncheckedReason, Verdict, WaitingReason } from '../domain/proof/verdict.ts';
import { chainName, type Directory, extendDirectory } from '../domain/transfers/chains.ts';
import { describeAmount } from '../domain/transfers/money.ts';
import { BadSettingError, EXIT, reportFailure } from '../exit.ts';
import { printableLine } from '../notifiers/printable.ts';
import { type DaemonOptions, print, withDaemon } from './daemon.ts';
import { utcTime } from './table.ts';
import {
  type CheckedPayment,
  checkPayment,
  type FoundTransfer,
  findTransfer,
  readBeside,
  VERIFIED_PAYMENTS,
} from './verified-payment.ts';

const REASONS: Readonly<Record<ProofReason, string>> = {
  reverted: 'the transaction failed',
  'no-transfer': 'the token did not move in it',
  short: 'less moved than stated',
  'other-recipient': 'somebody else received it',
  'other-intent': 'it is the payment of another transfer',
  'not-tied': 'nothing on the chain ties it to the intent, which was fulfilled on its source chain',
};

const WAITING: Readonly<Record<WaitingReason, string>> = {
  'not-found': 'no endpoint has the transaction yet',
  'not-final': 'its block is not final yet',
  disagreement: 'the endpoints do not agree',
  unreachable: 'no endpoint has answered',
  'one-endpoint': 'only one host has reported it as final, and one is not enough',
  claimed: 'its log proved another transfer, which is being checked anew',
  funding: 'what funded it is not checked yet',
  burn: 'the burn of its intent on the source chain is not known yet',
};

const UNCHECKED: Readonly<Record<UncheckedReason, string>> = {
  'native-token': 'the chain’s own money moves without a log',
  'token-unlisted': 'the token is neither one of the config (tokens) nor of the packaged list',
  'token-not-checkable': 'the token’s logs do not state what is received',
  ambiguous: 'several moves may be meant',
  'chain-not-checkable': 'chains of this kind are not checked',
  'not-stated': 'the upstream does not state enough',
  'no-fulfilment': 'the pinned contract logged nothing in it: is its address right?',
  'too-old': 'its block is older than the transfer',
};

/** Payments and their verdicts, as lines. */
export function verifiedText({
  found,
  payments,
  otherTransfers,
  calls,
  directory,
}: AllChecked & { found: FoundTransfer; directory: Directory }): string {
  const counts = Object.entries(calls).map(([name, count]) => `${name} ${count}`);
  return [
    `${line(found.subject)}, as the ${found.reportedBy} reports it`,
    ...(payments.length === 0
      ? ['  it states no payment yet']
      : payments.flatMap((payment) => paymentLines(payment, directory))),
    '',
    otherTransfers.checked
      ? 'other transfers: checked, in the Redis of the config'
      : line(`other transfers: NOT CHECKED, a log may have proved another one (${otherTransfers.reason})`),
    `calls: ${counts.length === 0 ? 'none' : counts.join(', ')}`,
  ].join('\n');
}

function paymentLines({ statement, verdict, responses }: CheckedPayment, directory: Directory): string[] {
  const { payment, chainId, txHash } = statement;
  const proof = 'proof' in verdict ? verdict.proof : null;
  const rows: [string, string][] = [
    ['stated', statedText(statement, directory)],
    ['found', responses === null ? NO_ENDPOINTS : verdictText(verdict)],
    ...(proof === null ? [] : [['checked', proof.checked.join(', ')] satisfies [string, string]]),
    ...(proof?.moved ?? []).map((move): [string, string] => [
      'moved',
      moveText(move, { chainId, directory }),
    ]),
    ...(responses ?? []).map((txState): [string, string] => [txState.endpoint, stateText(txState)]),
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
      return reason === undefined ? 'DISPUTED' : `DISPUTED, ${reason}: ${REASONS[reason]}`;
    }
    case 'unproven':
      if (verdict.proof.reason === NOT_TIED) return `UNPROVEN, ${NOT_TIED}: ${REASONS[NOT_TIED]}`;
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

function stateText(txState: TxState): string {
  switch (txState.outcome) {
    case 'found': {
      const { block, head, isFinal, succeeded } = txState;
      const final = isFinal ? 'final' : `not final: that is block ${head.number}`;
      return `block ${block.number} of ${utcTime(block.timestamp)}, ${succeeded ? 'succeeded' : 'failed'}, ${final}`;
    }
    case 'absent':
      return `does not have it${txState.head === null ? '' : `; final is block ${txState.head.number} of ${utcTime(txState.head.timestamp)}`}`;
    case 'failed':
      return txState.reason;
  }
}

/** One line, made printable, as its content comes from outside. */
function line(text: string): string {
  return printableLine(text, 500);
}

type VerifyOptions = DaemonOptions & { recipient?: string[] };

/** `verify`: checks the upstream's statements about a transfer on its chains, now. */
export function verifyCommand(): Command {
  return withDaemon(
    new Command('verify')
      .description(
        'Check on the chains what the upstream states of a transfer: exit code 0 verified, 1 disputed, 75 it cannot be known, 64 or 65 wrong arguments, 70 an error.',
      )
      .argument('<id>', 'its id, or the hash of the intent or of one of its transactions')
      .option(
        '--recipient <address>',
        'who should have received it, once or several times (default: the quote’s, where it was imported)',
        recipient,
      ),
  )
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? EXIT.done : EXIT.usage))
    .action(verifyOrReport);
}

function recipient(text: string, before: readonly string[] = []): string[] {
  const read = walletField.safeParse(text);
  if (!read.success) throw new InvalidArgumentError(`expected ${read.error.issues[0]?.message}`);
  return [...before, read.data];
}

/** Other errors do not exit with 1, which states that the chain disputes the transfer. */
async function verifyOrReport(id: string, options: VerifyOptions): Promise<void> {
  try {
    await verify(id, options);
  } catch (error) {
    const code = reportFailure(error);
    process.exitCode = code === EXIT.failed ? EXIT.unforeseen : code;
  }
}

async function verify(id: string, options: VerifyOptions): Promise<void> {
  const config = await loadConfig(resolve(options.config ?? CONFIG_DEFAULT), process.env);
  if (config.checkedChains.length === 0) {
    throw new BadSettingError(
      `${config.file}: found no chain with endpoints, expected chains with rpc: payments are checked with it`,
    );
  }
  const found = await findTransfer(id, { options, config });
  const checked = await checkAll(found, { config, recipients: options.recipient ?? [] });
  const outcome = outcomeOf(checked.payments);
  print(options, {
    raw: VERIFIED_PAYMENTS.parse({ ...found, outcome, ...checked }),
    text: () => verifiedText({ found, ...checked, directory: extendDirectory(config) }),
  });
  process.exitCode = EXIT_OF[outcome];
}

const EXIT_OF = { verified: EXIT.done, disputed: EXIT.failed, 'not reported': EXIT.tryAgain } as const;

type AllChecked = Pick<z.infer<typeof VERIFIED_PAYMENTS>, 'otherTransfers' | 'calls'> & {
  payments: CheckedPayment[];
};

async function checkAll(
  found: FoundTransfer,
  { config, recipients }: { config: Config; recipients: readonly string[] },
): Promise<AllChecked> {
  const calls: Record<string, number> = {};
  const onCall = ({ chainId, endpoint }: EndpointCall): void => {
    const name = `${chainId} ${endpoint}`;
    calls[name] = (calls[name] ?? 0) + 1;
  };
  const readers = createChainReaders(config.checkedChains, { onCall });
  try {
    const named = recipients.length > 0 ? recipients : found.recipients;
    const statements = statementsOf(found, { recipients: named, promised: found.promised });
    const { otherTransfers, beside } = await readBeside(statements, config.file);
    const payments = await Promise.all(
      statements.map((statement, index) =>
        checkPayment(statement, { readers, config, found, beside: beside(index) }),
      ),
    );
    return { otherTransfers, payments, calls };
  } finally {
    await Promise.all([...readers.values()].map((reader) => reader.close()));
  }
}

/** All payments must be verified: one that was not checked, as on a chain without endpoints, may be false. */
function outcomeOf(payments: readonly CheckedPayment[]): keyof typeof EXIT_OF {
  if (payments.some(({ verdict }) => verdict.outcome === 'disputed')) return 'disputed';
  const isVerified = payments.length > 0 && payments.every(({ verdict }) => verdict.outcome === 'verified');
  return isVerified ? 'verified' : 'not reported';
}
