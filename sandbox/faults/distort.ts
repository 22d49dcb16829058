import { integer } from '../world/random.ts';
import type { StatusRecord } from '../world/record.ts';
import type { Entry } from '../world/world.ts';
import type { Faults } from './faults.ts';

/** Effects of content faults on records and pages. */
export type Distortion = {
  /** Distorts an entry: an older one, a shifted clock, fewer intents, an unknown status or an unknown field. */
  entry<R extends object>(entry: Entry<R>, path: string): Entry<R>;
  hides(path: string): boolean;
  /** Moves or shuffles a page's entries. `list` names the collection. */
  page(
    entries: readonly Entry<StatusRecord>[],
    where: { path: string; list: string; current: (id: string) => Entry<StatusRecord> | undefined },
  ): Entry<StatusRecord>[];
  isOldestFirst(path: string): boolean;
  /** True when a cursor issued at `issuedMs` (Unix ms, null for one without a time) is refused. */
  isCursorExpired(path: string, issuedMs: number | null): boolean;
  /** The time in a cursor that is issued now; null where cursors never expire. */
  issuedMs(path: string): number | null;
  repeatsCursor(path: string): boolean;
};

const UNKNOWN_STATUS = 'awaiting_review';

export function createDistortion({ faults, nowMs }: { faults: Faults; nowMs: () => number }): Distortion {
  /** Per collection, the entry that was removed from its latest page and belongs on the next. */
  const moved = new Map<string, string>();

  function stale<R extends object>(entry: Entry<R>, path: string): Entry<R> {
    const older = entry.former;
    return older !== undefined && faults.strike('stale-reads', path) !== undefined ? older : entry;
  }

  function skewed<R extends object>(entry: Entry<R>, path: string): Entry<R> {
    const { record } = entry;
    if (!('updatedAt' in record) || typeof record.updatedAt !== 'number') return entry;
    const skew = faults.strike('clock-skew', path);
    if (skew === undefined) return entry;
    return { ...entry, record: { ...record, updatedAt: record.updatedAt + skew.skewSeconds } };
  }

  /** Of several intents of a quote or deposit address only the first is indexed. */
  function partial<R extends object>(entry: Entry<R>, path: string): Entry<R> {
    const { record } = entry;
    if (!('steps' in record && 'intentHashes' in record)) return entry;
    const { steps, intentHashes: hashes } = record;
    if (!Array.isArray(steps) || !Array.isArray(hashes) || hashes.length < 2) return entry;
    if (faults.strike('partly-indexed', path) === undefined) return entry;
    const [first] = hashes;
    const shown = { intentHashes: [first], steps: steps.filter(({ intentHash }) => intentHash === first) };
    return { ...entry, record: { ...record, ...shown } };
  }

  /** The same version of a record always appears the same, or every poll would find a change. */
  function strange<R extends object>(entry: Entry<R>, path: string): Entry<R> {
    const { id, status } = entry.mention;
    const where = { path, key: `${id} ${status}` };
    const hasUnknownStatus = faults.strikeAlways('unknown-status', where) !== undefined;
    const hasUnknownFields = faults.strikeAlways('unknown-fields', where) !== undefined;
    if (!hasUnknownStatus && !hasUnknownFields) return entry;
    const word = 'state' in entry.record ? { state: UNKNOWN_STATUS } : { status: UNKNOWN_STATUS };
    return {
      record: {
        ...entry.record,
        ...(hasUnknownStatus ? word : {}),
        ...(hasUnknownFields ? { riskScore: { level: 'low', checks: ['a', 'b'] } } : {}),
      },
      mention: hasUnknownStatus ? { id, status: UNKNOWN_STATUS } : entry.mention,
    };
  }

  return {
    entry: (entry, path) => strange(partial(skewed(stale(entry, path), path), path), path),
    hides: (path) => faults.strike('not-indexed', path) !== undefined,
    page(entries, { path, list, current }) {
      const shown = [...entries];
      if (shown.length > 1 && faults.strike('moving-items', path) !== undefined) {
        const [removed] = shown.splice(integer(faults.random, shown.length), 1);
        const returning = current(moved.get(list) ?? '');
        if (returning !== undefined && !shown.includes(returning)) shown.unshift(returning);
        if (removed !== undefined) moved.set(list, removed.record.id);
      }
      if (faults.strike('shuffled-pages', path) === undefined) return shown;
      for (let index = shown.length - 1; index > 0; index--) {
        const other = integer(faults.random, index + 1);
        const [left, right] = [shown[index], shown[other]];
        if (left !== undefined && right !== undefined) [shown[index], shown[other]] = [right, left];
      }
      return shown;
    },
    isOldestFirst: (path) => faults.strike('oldest-first', path) !== undefined,
    isCursorExpired(path, issuedMs) {
      const lifetime = issuedMs === null ? undefined : faults.strike('cursor-lifetime', path);
      const isOver = lifetime !== undefined && nowMs() - (issuedMs ?? 0) > lifetime.seconds * 1000;
      return isOver || faults.strike('expired-cursors', path) !== undefined;
    },
    issuedMs: (path) => (faults.strike('cursor-lifetime', path) === undefined ? null : Math.round(nowMs())),
    repeatsCursor: (path) => faults.strike('repeated-cursors', path) !== undefined,
  };
}
