import type { JsonObject } from '../domain/json.ts';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import { UNKNOWN, UNSTATED } from '../domain/subjects/kinds.ts';
import type { UpstreamRecord } from '../domain/subjects/record.ts';
import {
  foldHex,
  gatewayJobId,
  intentId,
  parseSubjectId,
  type RouteService,
  reservedKindOf,
  type SubjectId,
  vaultId,
} from '../domain/subjects/subject.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';
import type { OpenQuotesClient } from '../upstream/client/open-quotes-client.ts';
import { kindOf, textOrNull } from '../upstream/wire/wire.ts';
import { type PollResponse, readPage, strangerFailure } from './poll-response.ts';
import type { RouteRequest } from './route.ts';
import { pollIntent, pollQuote, pollTx } from './status.ts';

/** The subject of a request and its time (ms since 1970); `route` is the definition of a route, null for any other subject. */
export type PollTarget = { subject: SubjectId; route: RouteDefinition | null; nowMs: number };

/** The pricing functions by service; a service that the config does not use is missing. */
export type Pricing = Readonly<
  Partial<Record<RouteService, (requested: RouteRequest, signal: AbortSignal) => Promise<PollResponse>>>
>;

/** Requests a subject that has one record. Throws UpstreamFailure, or the signal's reason. */
export async function pollRecord(
  client: UpstreamClient,
  subject: SubjectId,
  signal: AbortSignal,
): Promise<PollResponse> {
  const key = parseSubjectId(subject);
  switch (key?.kind) {
    case 'intent':
      return pollIntent(client, key, signal);
    case 'quote':
      return pollQuote(client, key, signal);
    case 'gasless':
      return pollGasless(client, key, signal);
    case 'vault':
      return pollVault(client, key, signal);
    case 'by-tx':
      return pollTx(client, key, signal);
    default:
      throw new Error(`${subject} cannot be polled`);
  }
}

/** Requests the price of a route. Throws UpstreamFailure, or the signal's reason. */
export async function pollPrice(
  pricing: Pricing,
  { subject, route, nowMs }: PollTarget,
  signal: AbortSignal,
): Promise<PollResponse> {
  const key = parseSubjectId(subject);
  const service = key?.kind === 'route' ? key.service : null;
  const price = route?.service === service && service !== null ? pricing[service] : undefined;
  if (route === null || price === undefined) throw new Error(`${subject} is not defined`);
  return price({ route, nowMs }, signal);
}

async function pollVault(
  client: UpstreamClient,
  vault: { address: string; chainId: number },
  signal: AbortSignal,
): Promise<PollResponse> {
  const subject = vaultId(vault);
  return orUnknown(subject, async () => {
    const { value, dateMs, httpStatus } = await client.vault(vault, { signal });
    const { vaultAddress, chainId } = value;
    const reserved = reservedResponse(value.raw, { id: vaultAddress, dateMs });
    if (reserved !== null) return reserved;
    // One address may be a vault on several chains, and the way in which the chain is requested is an assumption.
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

/** A response without a usable record, where its record has a kind of the daemon's own; null for any other. */
function reservedResponse(
  raw: JsonObject,
  { id, dateMs }: { id: string | null; dateMs: number | null },
): PollResponse | null {
  const named = textOrNull(raw.id) ?? id ?? '';
  const kind = reservedKindOf({ id: named, type: textOrNull(raw.type) ?? '' });
  if (kind === null) return null;
  return { records: [], nextCursor: null, dateMs, unreadable: [], reserved: [{ kind, id: named }] };
}

/**
 * True when an answer's id equals the requested one, in whatever form: with a prefix (`gasless:…`), in another case, an address
 * without `0x`. An exact poll knows its request; the id only must not name anything else.
 */
function isSameId(answered: string, requested: string): boolean {
  return bareId(answered) === bareId(requested);
}

function bareId(id: string): string {
  return id
    .slice(id.lastIndexOf(':') + 1)
    .toLowerCase()
    .replace(/^0x/, '');
}

/**
 * Converts a `404` to the status `unknown`. The deposit gateway and the open source answer `404` where the status endpoint
 * answers `unknown`: the id has not been seen, which is no failure. A page, or an unknown endpoint, is no statement about the
 * id: the path is wrong, or an intermediary answered.
 */
async function orUnknown(subject: SubjectId, poll: () => Promise<PollResponse>): Promise<PollResponse> {
  try {
    return await poll();
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.code !== 'not-found') throw error;
    if (isAboutPath(error)) throw error;
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

/** True for a 404 of a path: a page, the code for it, or the answers of web frameworks and of the open quoting service. */
function isAboutPath({ isPage, problemCode, fields, message }: UpstreamFailure): boolean {
  const isNamed = fields.some(({ field }) => field === 'path');
  return (
    isPage || isNamed || problemCode === 'endpoint-not-found' || /\bCannot (?:GET|POST) \//.test(message)
  );
}

async function pollGasless(
  client: UpstreamClient,
  job: { endpoint: 'status' | 'gateway'; id: string },
  signal: AbortSignal,
): Promise<PollResponse> {
  if (job.endpoint === 'status') return readPage(await client.status({ jobId: job.id }, { signal }));
  const subject = gatewayJobId(job.id);
  return orUnknown(subject, async () => {
    const { value, dateMs, httpStatus } = await client.gaslessJob(job.id, { signal });
    const reserved = reservedResponse(value.raw, { id: value.id, dateMs });
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

/** Requests one intent at the open source. Its record has the word of v1 as `status`, and the whole answer as `open`. */
export async function pollOpenStatus(
  client: OpenQuotesClient,
  subject: SubjectId,
  signal: AbortSignal,
): Promise<PollResponse> {
  const key = parseSubjectId(subject);
  if (key?.kind !== 'intent') throw new Error(`${subject} cannot be polled at the open source`);
  return orUnknown(subject, async () => {
    const { value, dateMs, httpStatus } = await client.intentStatus(key.hash, { signal });
    const { status, intentHashes, raw } = value;
    const stranger = intentHashes.find((hash) => hash !== foldHex(key.hash));
    if (stranger !== undefined) {
      const found = intentId(stranger);
      throw strangerFailure({ endpoint: 'open-status', httpStatus, found, expected: subject });
    }
    const record: UpstreamRecord = {
      subject,
      status,
      updatedAt: null,
      names: [],
      raw: { id: subject, type: 'intent', status, open: raw },
      unreadable: [],
    };
    const { intentHash } = raw;
    const isUnread = intentHash !== undefined && intentHash !== null && textOrNull(intentHash) === null;
    const unreadable = isUnread ? [`open.intentHash: found ${kindOf(intentHash)}, expected text`] : [];
    return { records: [record], nextCursor: null, dateMs, unreadable };
  });
}
