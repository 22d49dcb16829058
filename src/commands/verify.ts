import { resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import type { z } from 'zod';
import { createChainReaders, type EndpointCall } from '../chains/chain-readers.ts';
import type { Config } from '../config/config.ts';
import { walletField } from '../config/fields/addresses.ts';
import { CONFIG_DEFAULT, loadConfig } from '../config/file/load.ts';
import { statementsOf } from '../domain/proof/statement.ts';
import { extendDirectory } from '../domain/transfers/chains.ts';
import { BadSettingError, EXIT, reportFailure } from '../exit.ts';
import { type DaemonOptions, print, withDaemon } from './daemon.ts';
import { type CheckedPayment, checkPayment } from './verify/check-payment.ts';
import { type FoundTransfer, findTransfer } from './verify/find-transfer.ts';
import { lookBeside } from './verify/other-transfers.ts';
import { VERIFIED_PAYMENTS } from './verify/verified-json.ts';
import { verifiedText } from './verify/verified-text.ts';

type Options = DaemonOptions & { recipient?: string[] };

/** `verify`: checks what the upstream states of a transfer on its chains, now. */
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
    .action(verifyOrSay);
}

function recipient(text: string, before: readonly string[] = []): string[] {
  const read = walletField.safeParse(text);
  if (!read.success) throw new InvalidArgumentError(`expected ${read.error.issues[0]?.message}`);
  return [...before, read.data];
}

/** What went wrong does not end it with 1, which says that the chain disputes it. */
async function verifyOrSay(id: string, options: Options): Promise<void> {
  try {
    await verify(id, options);
  } catch (error) {
    const code = reportFailure(error);
    process.exitCode = code === EXIT.failed ? EXIT.unforeseen : code;
  }
}

async function verify(id: string, options: Options): Promise<void> {
  const config = await loadConfig(resolve(options.config ?? CONFIG_DEFAULT), process.env);
  if (config.checkedChains.length === 0) {
    throw new BadSettingError(
      `${config.file}: found no chain with endpoints, expected chains with rpc: they are what is asked`,
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
  { subject, record, recipients: quoted, statedAtMs }: FoundTransfer,
  { config, recipients }: { config: Config; recipients: readonly string[] },
): Promise<AllChecked> {
  const calls: Record<string, number> = {};
  const onCall = ({ chainId, endpoint }: EndpointCall): void => {
    const name = `${chainId} ${endpoint}`;
    calls[name] = (calls[name] ?? 0) + 1;
  };
  const readers = createChainReaders(config.checkedChains, { onCall });
  try {
    const known = { recipients: recipients.length > 0 ? recipients : quoted };
    const statements = statementsOf({ subject, record }, known);
    const { otherTransfers, beside } = await lookBeside(statements, config.file);
    const payments = await Promise.all(
      statements.map((statement, index) =>
        checkPayment(statement, { readers, config, statedAtMs, beside: beside(index) }),
      ),
    );
    return { otherTransfers, payments, calls };
  } finally {
    await Promise.all([...readers.values()].map((reader) => reader.close()));
  }
}

/** Chains without endpoints were not asked about; what was asked about must all be verified. */
function outcomeOf(payments: readonly CheckedPayment[]): keyof typeof EXIT_OF {
  const asked = payments.filter(({ readings }) => readings !== null);
  if (asked.some(({ verdict }) => verdict.outcome === 'disputed')) return 'disputed';
  const isVerified = asked.length > 0 && asked.every(({ verdict }) => verdict.outcome === 'verified');
  return isVerified ? 'verified' : 'not reported';
}
