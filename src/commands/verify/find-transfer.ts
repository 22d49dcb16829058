import { daemonAddress } from '../../client/address.ts';
import { ApiClient, ProblemReply } from '../../client/api-client.ts';
import type { Config } from '../../config/config.ts';
import type { JsonObject } from '../../domain/json.ts';
import { promisedBy } from '../../domain/quotes/promised.ts';
import {
  asSubjectId,
  parseSubjectId,
  type SubjectId,
  subjectOfRecord,
} from '../../domain/subjects/subject.ts';
import { BadInputError, BadSettingError, TryAgainError } from '../../exit.ts';
import { printableLine } from '../../notifiers/printable.ts';
import { readSubject } from '../../server/api/routes/subjects.ts';
import { askAgain } from '../../upstream/client/again.ts';
import type { StatusQuery } from '../../upstream/wire/status-page.ts';
import { withClient } from '../connection.ts';
import type { DaemonOptions } from '../daemon.ts';
import { findSubject, NotWatchedError, SeveralWatchedError } from '../find-subject.ts';

/** A transfer as somebody reported it. */
export type FoundTransfer = {
  subject: SubjectId;
  record: JsonObject;
  reportedBy: 'daemon' | 'upstream';
  /** Who is to receive it by the imported quote and by its subscriptions; empty where neither says. */
  recipients: string[];
  /** When the upstream stated what it states; null where it does not say. */
  statedAtMs: number | null;
};

/**
 * The transfer that somebody means: as the daemon keeps it, else as the upstream tells it when asked by the hash. A daemon
 * that was named must answer.
 */
export async function findTransfer(
  id: string,
  { options, config }: { options: DaemonOptions; config: Config },
): Promise<FoundTransfer> {
  return (await keptTransfer(id, { options, config })) ?? (await askedTransfer(id, config));
}

/** Null where no daemon answers, or it does not watch the transfer. */
async function keptTransfer(
  id: string,
  { options, config }: { options: DaemonOptions; config: Config },
): Promise<FoundTransfer | null> {
  const isNamed = options.url !== undefined && options.url !== '';
  try {
    const client = new ApiClient(await daemonAddress(options, process.env));
    const subject = await findSubject(client, id);
    const { body } = await client.ask(readSubject, { params: { subject }, query: { limit: 1 } });
    const { record, transfer, subscriptions } = body;
    if (record === null) return null;
    const quoted = transfer?.quote === undefined ? undefined : transfer.recipient;
    return {
      subject: asSubjectId(subject),
      record,
      reportedBy: 'daemon',
      // A record's own recipient is the upstream's word.
      recipients: [
        ...(quoted === undefined || record.recipient !== undefined ? [] : [quoted]),
        ...config.subscriptions.flatMap(({ name, recipients }) =>
          subscriptions.includes(name) ? recipients : [],
        ),
      ],
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

async function askedTransfer(id: string, config: Config): Promise<FoundTransfer> {
  const hash = parseSubjectId(id)?.kind === 'intent' ? id.slice('intent:'.length) : id;
  const named = JSON.stringify(printableLine(id, 120));
  if (!/^[0-9A-Za-z]{40,100}$/.test(hash)) {
    throw new BadInputError(
      `found no daemon that watches ${named}, expected the hash of an intent or transaction to ask the upstream by`,
    );
  }
  const queries: StatusQuery[] = [{ intentHash: hash }, { destinationTxHash: hash }, { sourceTxHash: hash }];
  return withClient(config.upstream, async (client) => {
    for (const query of queries) {
      const { records } = (await askAgain(() => client.status(query))).value;
      for (const record of records) {
        const subject = record.status === 'unknown' ? null : subjectOfRecord(record);
        if (subject === null || parseSubjectId(subject)?.kind !== 'intent') continue;
        const statedAtMs = record.updatedAt === null ? null : record.updatedAt * 1_000;
        const recipients = namedRecipients(subject, config);
        return { subject, record: record.raw, reportedBy: 'upstream', recipients, statedAtMs };
      }
    }
    // Not a failure with 1, which says that the chain disputes it.
    throw new TryAgainError(
      `found no transfer by ${named}, expected one that the upstream or the daemon knows`,
    );
  });
}

/** By the quotes and subscriptions of the config that name this intent. */
function namedRecipients(subject: SubjectId, { importedQuotes, subscriptions }: Config): string[] {
  const hash = subject.slice('intent:'.length);
  const quotes = importedQuotes.filter(({ raw }) => JSON.stringify(raw).toLowerCase().includes(hash));
  return [
    ...quotes.flatMap((quote) => promisedBy(quote).destination?.recipient ?? []),
    ...subscriptions.flatMap(({ intents, recipients }) => (intents.includes(hash) ? recipients : [])),
  ];
}

function updatedAtMs({ updatedAt }: JsonObject): number | null {
  return typeof updatedAt === 'number' ? updatedAt * 1_000 : null;
}
