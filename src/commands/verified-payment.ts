import { z } from 'zod';
import { type ChainReader, readBurn } from '../chains/chain-readers.ts';
import { daemonAddress } from '../client/address.ts';
import { ApiClient, ProblemReply } from '../client/api-client.ts';
import type { Config } from '../config/config.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Funding, LogOwner } from '../domain/proof/log-owner.ts';
import { PAYMENTS, PROOF, TX_STATE, type TxState } from '../domain/proof/proof.ts';
import { type Statement, tokenRules } from '../domain/proof/statement.ts';
import { judge, UNCHECKED_REASONS, type Verdict, WAITING_REASONS } from '../domain/proof/verdict.ts';
import { localHashesOf, promisedBy } from '../domain/quotes/promised.ts';
import { asSubjectId, parseSubjectId, type SubjectId, subjectOfRecord } from '../domain/subjects/subject.ts';
import { messageOf } from '../errors.ts';
import { BadInputError, BadSettingError, TryAgainError } from '../exit.ts';
import { printableLine } from '../notifiers/printable.ts';
import type { OperationContext } from '../operations/operation.ts';
import { fundingOf } from '../queues/checks/run-check.ts';
import { readSubject } from '../server/api/routes/subjects.ts';
import type { StatusQuery } from '../upstream/wire/status-page.ts';
import { retry, withClient } from './connection.ts';
import type { DaemonOptions } from './daemon.ts';
import { withDeliveries } from './deliveries-of.ts';
import { findSubject, NotWatchedError, SeveralWatchedError } from './find-subject.ts';

/** A transfer as the daemon or the upstream reported it. */
export type FoundTransfer = {
  subject: SubjectId;
  record: JsonObject;
  reportedBy: 'daemon' | 'upstream';
  /** Recipients by the imported quote and by its subscriptions; empty where neither names any. */
  recipients: string[];
  /** Facts of the imported quote beside the recipient. */
  promised: { refundRecipient?: string; local?: true };
  /** Time of the upstream's statement; null where it gives none. */
  statedAtMs: number | null;
};

/** Finds a transfer in the daemon, else at the upstream by the hash. A daemon named in the options must answer. */
export async function findTransfer(
  id: string,
  { options, config }: { options: DaemonOptions; config: Config },
): Promise<FoundTransfer> {
  return (await storedTransfer(id, { options, config })) ?? (await requestTransfer(id, config));
}

/** Null where no daemon answers, or it does not watch the transfer. */
async function storedTransfer(
  id: string,
  { options, config }: { options: DaemonOptions; config: Config },
): Promise<FoundTransfer | null> {
  const isNamed = options.url !== undefined && options.url !== '';
  try {
    const client = new ApiClient(await daemonAddress(options, process.env));
    const subject = await findSubject(client, id);
    const { body } = await client.call(readSubject, { params: { subject }, query: { limit: 1 } });
    const { record, transfer, subscriptions } = body;
    if (record === null) return null;
    const quoted = transfer?.quote === undefined ? undefined : transfer.recipient;
    return {
      subject: asSubjectId(subject),
      record,
      reportedBy: 'daemon',
      // A record's own recipient is only the upstream's statement.
      recipients: [
        ...(quoted === undefined || record.recipient !== undefined ? [] : [quoted]),
        ...config.subscriptions.flatMap(({ name, recipients }) =>
          subscriptions.includes(name) ? recipients : [],
        ),
      ],
      promised: refundOf(transfer?.refundRecipient, record.refundRecipient),
      statedAtMs: updatedAtMs(record),
    };
  } catch (error) {
    const isAway = error instanceof TryAgainError || error instanceof BadSettingError;
    const isUnknown =
      error instanceof NotWatchedError || (error instanceof ProblemReply && error.status === 404);
    if (isUnknown || (isAway && !isNamed)) return null;
    if (error instanceof SeveralWatchedError) throw new BadInputError(error.message);
    throw error;
  }
}

async function requestTransfer(id: string, config: Config): Promise<FoundTransfer> {
  const hash = parseSubjectId(id)?.kind === 'intent' ? id.slice('intent:'.length) : id;
  const named = JSON.stringify(printableLine(id, 120));
  if (!/^[0-9A-Za-z]{40,100}$/.test(hash)) {
    throw new BadInputError(
      `found no daemon that watches ${named}, expected the hash of an intent or transaction to fetch from the upstream`,
    );
  }
  const queries: StatusQuery[] = [{ intentHash: hash }, { destinationTxHash: hash }, { sourceTxHash: hash }];
  return withClient(config.upstream, async (client) => {
    for (const query of queries) {
      const { records } = (await retry(() => client.status(query))).value;
      for (const record of records) {
        const subject = record.status === 'unknown' ? null : subjectOfRecord(record);
        if (subject === null || parseSubjectId(subject)?.kind !== 'intent') continue;
        const statedAtMs = record.updatedAt === null ? null : record.updatedAt * 1_000;
        return {
          subject,
          record: record.raw,
          reportedBy: 'upstream',
          ...namedRecipients(subject, config),
          statedAtMs,
        };
      }
    }
    // Not a failure with 1, which states that the chain disputes it.
    throw new TryAgainError(
      `found no transfer by ${named}, expected one that the upstream or the daemon knows`,
    );
  });
}

/** The promised recipient of a refund; none where it may be the record's own, which is only the upstream's statement. */
function refundOf(shown: string | undefined, stated: unknown): { refundRecipient?: string } {
  return shown === undefined || shown === stated ? {} : { refundRecipient: shown };
}

function namedRecipients(subject: SubjectId, { importedQuotes, subscriptions }: Config) {
  const hash = subject.slice('intent:'.length);
  const quotes = importedQuotes.filter(({ raw }) => JSON.stringify(raw).toLowerCase().includes(hash));
  const promises = quotes.map(promisedBy);
  const recipients = [
    ...promises.flatMap(({ destination }) => destination?.recipient ?? []),
    ...subscriptions.flatMap(({ intents, recipients }) => (intents.includes(hash) ? recipients : [])),
  ];
  const { refundRecipient } = promises.find((promised) => promised.refundRecipient !== undefined) ?? {};
  const isLocal = quotes.some(({ raw }) => localHashesOf(raw).includes(hash));
  const promised = {
    ...(refundRecipient === undefined ? {} : { refundRecipient }),
    ...(isLocal ? { local: true as const } : {}),
  };
  return { recipients, promised };
}

function updatedAtMs({ updatedAt }: JsonObject): number | null {
  return typeof updatedAt === 'number' ? updatedAt * 1_000 : null;
}

const STATED_PAYMENT = z.object({
  subject: z.string(),
  payment: z.enum(PAYMENTS),
  chainId: z.string(),
  txHash: z.string(),
  token: z.string().nullable(),
  /** Base units; null where none is stated, as for a refund. */
  amount: z.string().nullable(),
  /** For a refund: the sent amount, in base units. */
  sent: z.string().nullable(),
  recipients: z.array(z.string()),
});

const VERDICT = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('waiting'), because: z.enum(WAITING_REASONS) }),
  z.object({ outcome: z.literal('unchecked'), because: z.enum(UNCHECKED_REASONS) }),
  z.object({ outcome: z.enum(['verified', 'disputed', 'unproven']), proof: PROOF }),
]);

/** True when the logs that proved other transfers were checked; `reason` explains the opposite. */
const OTHER_TRANSFERS = z.discriminatedUnion('checked', [
  z.object({ checked: z.literal(true) }),
  z.object({ checked: z.literal(false), reason: z.string() }),
]);

export const VERIFIED_PAYMENTS = z.object({
  subject: z.string(),
  reportedBy: z.enum(['daemon', 'upstream']),
  outcome: z.enum(['verified', 'disputed', 'not reported']),
  otherTransfers: OTHER_TRANSFERS,
  payments: z.array(
    z.object({
      statement: STATED_PAYMENT,
      verdict: VERDICT,
      /** Observation of each endpoint; null where the config has none of the chain. */
      responses: z.array(TX_STATE).nullable(),
    }),
  ),
  /** "<chain> <endpoint>" -> number of calls. */
  calls: z.record(z.string(), z.int()),
});

/** The daemon's knowledge beside a statement: logs that proved other transfers, and the funding of its own. */
type OwnerContext = {
  ownerOf(index: number): LogOwner | null;
  funding: Funding;
  rememberedMs: number;
  isLocal: boolean;
};

const NOTHING_BESIDE: OwnerContext = {
  ownerOf: () => null,
  funding: null,
  rememberedMs: 0,
  isLocal: false,
};

/** Reads the use of the statements' logs from the config's Redis, in order. Without an answer, nothing is known. */
export async function readBeside(
  statements: readonly Statement[],
  file: string,
): Promise<{ otherTransfers: z.infer<typeof OTHER_TRANSFERS>; beside: (index: number) => OwnerContext }> {
  try {
    const contexts = await withDeliveries(file, (deps) =>
      Promise.all(statements.map((statement) => ownerContext(statement, deps))),
    );
    return { otherTransfers: { checked: true }, beside: (index) => contexts[index] ?? NOTHING_BESIDE };
  } catch (error) {
    const reason = messageOf(error);
    return { otherTransfers: { checked: false, reason }, beside: () => NOTHING_BESIDE };
  }
}

async function ownerContext(statement: Statement, { stores }: OperationContext): Promise<OwnerContext> {
  const entry = await stores.subjects.peek(statement.subject);
  const [owners, funding]: [Map<number, LogOwner>, Funding] = await Promise.all([
    stores.checks.ownersOfLogs(statement),
    fundingOf(statement, entry, stores.checks),
  ]);
  return {
    ownerOf: (index) => owners.get(index) ?? null,
    funding,
    rememberedMs: stores.checks.retentionMs,
    isLocal: entry.promised?.local === true,
  };
}

/** A payment and its verdict; `responses` is null where the config has no endpoints of its chain. */
export type CheckedPayment = { statement: Statement; verdict: Verdict; responses: TxState[] | null };

/** Requests the payment from every endpoint of its chain once, and judges the answers. */
export async function checkPayment(
  statement: Statement,
  {
    readers,
    config,
    found: { record, promised, statedAtMs },
    beside: { isLocal, ...beside },
  }: {
    readers: ReadonlyMap<string, ChainReader>;
    config: Config;
    found: FoundTransfer;
    beside: OwnerContext;
  },
): Promise<CheckedPayment> {
  const { chainId, txHash, token } = statement;
  const nowMs = Date.now();
  const rules = {
    ...tokenRules(config)(chainId),
    ...beside,
    burn: null,
    statedAtMs: statedAtMs ?? nowMs,
    nowMs,
  };
  const reader = readers.get(chainId);
  const before = judge(statement, [], rules);
  if (reader === undefined) {
    const isDecided = before.outcome === 'unchecked';
    return {
      statement,
      responses: null,
      verdict: isDecided ? before : { outcome: 'waiting', because: 'unreachable' },
    };
  }
  if (before.outcome === 'unchecked') return { statement, responses: [], verdict: before };
  const responses = await reader.read(txHash, { token });
  const facts = { promised: isLocal ? { local: true as const } : promised, record };
  const burn = await readBurn(statement, facts, { readers, ageMs: nowMs - rules.statedAtMs });
  return { statement, responses, verdict: judge(statement, responses, { ...rules, burn }) };
}
