import type { JsonObject } from '../domain/json.ts';
import { UNKNOWN, UNSTATED } from '../domain/subjects/kinds.ts';
import { gatewayJobId, reservedKindOf, type SubjectId, vaultId } from '../domain/subjects/subject.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';
import { textOrNull } from '../upstream/wire/wire.ts';
import { type Reading, readPage, strangerFailure } from './reading.ts';

/** Asks for one deposit vault by its address and the chain on which it is funded. */
export async function pollVault(
  client: UpstreamClient,
  vault: { address: string; chainId: number },
  signal: AbortSignal,
): Promise<Reading> {
  const subject = vaultId(vault);
  return orUnknown(subject, async () => {
    const { value, dateMs, httpStatus } = await client.vault(vault, { signal });
    const { vaultAddress, chainId } = value;
    const reserved = reservedReading(value.raw, { id: vaultAddress, dateMs });
    if (reserved !== null) return reserved;
    // One address may be a vault on several chains, and how the chain is requested is an assumption.
    const isOtherChain = chainId !== null && chainId !== vault.chainId;
    if (isOtherChain || (vaultAddress !== null && !isSameId(vaultAddress, vault.address))) {
      const found = `${chainId ?? vault.chainId}:${vaultAddress ?? vault.address}`;
      throw strangerFailure({ endpoint: 'vault', httpStatus, found, expected: subject });
    }
    const record = {
      subject,
      status: value.state ?? UNSTATED,
      updatedAt: null,
      names: value.intentHash === null ? [] : [value.intentHash],
      raw: value.raw,
      unreadable: value.unreadable,
    };
    return { records: [record], nextCursor: null, dateMs, unreadable: [] };
  });
}

/** A response without a usable record, where the one that came has a kind of the daemon's own; null for any other. */
function reservedReading(
  raw: JsonObject,
  { id, dateMs }: { id: string | null; dateMs: number | null },
): Reading | null {
  const named = textOrNull(raw.id) ?? id ?? '';
  const kind = reservedKindOf({ id: named, type: textOrNull(raw.type) ?? '' });
  if (kind === null) return null;
  return { records: [], nextCursor: null, dateMs, unreadable: [], reserved: [{ kind, id: named }] };
}

/**
 * True when an answer's id is the one that was requested, in whatever form: with a prefix (`gasless:…`), in another case,
 * an address without `0x`. An exact poll knows what it requested; the id only has to name nothing else.
 */
function isSameId(answered: string, asked: string): boolean {
  return bareId(answered) === bareId(asked);
}

function bareId(id: string): string {
  return id
    .slice(id.lastIndexOf(':') + 1)
    .toLowerCase()
    .replace(/^0x/, '');
}

/**
 * The deposit gateway answers `404` where the status endpoint answers `unknown`: in both cases the id has not been
 * seen, which is no failure. A page, or an unknown endpoint, says nothing about the id: that is a wrong path or
 * something in between.
 */
async function orUnknown(subject: SubjectId, ask: () => Promise<Reading>): Promise<Reading> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.code !== 'not-found') throw error;
    if (error.isPage || error.problemCode === 'endpoint-not-found') throw error;
    const record = {
      subject,
      status: UNKNOWN,
      updatedAt: null,
      names: [],
      raw: { status: UNKNOWN },
      unreadable: [],
    };
    return { records: [record], nextCursor: null, dateMs: null, unreadable: [] };
  }
}

/** Asks for one gasless job: at the v1 status endpoint, or at the deposit gateway that queued it. */
export async function pollGasless(
  client: UpstreamClient,
  job: { endpoint: 'status' | 'gateway'; id: string },
  signal: AbortSignal,
): Promise<Reading> {
  if (job.endpoint === 'status') return readPage(await client.status({ jobId: job.id }, { signal }));
  const subject = gatewayJobId(job.id);
  return orUnknown(subject, async () => {
    const { value, dateMs, httpStatus } = await client.gaslessJob(job.id, { signal });
    const reserved = reservedReading(value.raw, { id: value.id, dateMs });
    if (reserved !== null) return reserved;
    if (value.id !== null && !isSameId(value.id, job.id)) {
      throw strangerFailure({ endpoint: 'gasless-job', httpStatus, found: value.id, expected: subject });
    }
    const record = {
      subject,
      status: value.status ?? UNSTATED,
      updatedAt: null,
      names: value.intentHash === null ? [] : [value.intentHash],
      raw: value.raw,
      unreadable: value.unreadable,
    };
    return { records: [record], nextCursor: null, dateMs, unreadable: [] };
  });
}
