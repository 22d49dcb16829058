import { phaseOf } from '../domain/books/book-state.ts';
import { fundedAt } from '../domain/changes/next-snapshot.ts';
import type { Event } from '../domain/events/event.ts';
import { renderEvent } from '../domain/events/render.ts';
import { asSubjectId, eventKind, parseSubjectId } from '../domain/subjects/subject.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { Registry } from '../store/registry.ts';
import type { ChangedSubject, Known, SubjectStore } from '../store/subjects.ts';
import { asKey, observationOf, type Seen } from './observations.ts';

/** The number of snapshots that are read in one go. */
const CHUNK = 200;

/** A transfer as its snapshot has it. `lastEntry` is where its newest event stands in the log; null for none. */
export type SnapshotSeen = Seen & { lastEntry: string | null };

/**
 * Transfers under way whose snapshot was first stored, or got an event, since a moment (Redis time, ms). Those that were
 * under way when their wallet was subscribed are history: no event tells of them until they change, and the books take
 * them from here.
 */
export async function snapshotsSince(
  sinceMs: number,
  sources: { subjects: SubjectStore; registry: Registry; directory: Directory },
): Promise<SnapshotSeen[]> {
  const { subjects } = sources;
  const seen: SnapshotSeen[] = [];
  let from: ChangedSubject | null = null;
  for (;;) {
    const some: ChangedSubject[] = await subjects.changed(from, CHUNK);
    const recent = some.filter(({ atMs }) => atMs >= sinceMs);
    const ids = recent.flatMap(({ subject }) => {
      const key = parseSubjectId(subject);
      return key?.kind === 'intent' || key?.kind === 'deposit-address' ? [asSubjectId(subject)] : [];
    });
    const known = await subjects.peek(ids);
    for (const [index, id] of ids.entries()) {
      const one = await readOne(id, known[index], sources);
      if (one !== null) seen.push(one);
    }
    from = some.at(-1) ?? null;
    if (some.length < CHUNK || recent.length < some.length || from === null) return seen;
  }
}

async function readOne(
  subject: ReturnType<typeof asSubjectId>,
  known: Known | undefined,
  { subjects, registry, directory }: { subjects: SubjectStore; registry: Registry; directory: Directory },
): Promise<SnapshotSeen | null> {
  const snapshot = known?.snapshot ?? null;
  if (snapshot === null || snapshot.salvaged === true || phaseOf(snapshot.status) !== 'open') return null;
  const [lastEntry = null] = await subjects.entries.list([subject], { before: null, from: null, count: 1 });
  const roots = (known?.claims ?? []).map(({ root }) => root);
  const kind = eventKind(subject);
  const since = fundedAt(subject, snapshot);
  const event: Event = {
    id: `snapshot ${asKey(subject)} ${snapshot.version}`,
    type: `${kind}.${snapshot.status.toLowerCase()}`,
    timestamp: new Date(snapshot.observedAtMs).toISOString(),
    data: {
      subject: { kind, id: subject },
      sequence: snapshot.sequence,
      epoch: snapshot.epoch,
      status: snapshot.status,
      previousStatus: null,
      changes: [],
      record: snapshot.record,
      upstreamUpdatedAt: snapshot.updatedAt,
      detectionDelaySeconds: null,
      ...(since === null ? {} : { fundedAt: since }),
      ...(known?.promised === null || known?.promised === undefined ? {} : { promised: known.promised }),
    },
  };
  const rendered = renderEvent(event, roots, await registry.subscriptions(roots), directory);
  return { observation: observationOf(rendered, event), entry: lastEntry ?? '0-0', receivers: [], lastEntry };
}
