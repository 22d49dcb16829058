import { canonicalJson, type JsonObject } from '../json.ts';
import { isBeyond, type RouteSummary, readRoute } from '../quotes/route.ts';
import type { Snapshot, UpstreamRecord } from '../subjects/record.ts';
import type { Decision, Transition } from './decision.ts';

/** Members of a route's record in which a difference is no news by itself: each answer has its own quote. */
const SILENT = new Set(['quote', 'previousOutput', 'reportedOutput', 'movedBy']);

/**
 * What an answer means for a route. It is held against what was last reported, not against the last answer: so a slow drift
 * is reported as well, and what only wobbles is not. What is not reported is stored all the same, for those who watch.
 */
export function decideRoute(snapshot: Snapshot | null, record: UpstreamRecord): Decision {
  const { status, raw } = record;
  const accepted = (more: JsonObject) => ({ status, updatedAt: null, record: { ...raw, ...more } });
  const answer = readRoute(raw);
  if (answer === null) throw new Error(`${record.subject} has a record that is none of a route`);
  const transition = (word: string, changes: string[]): Transition => ({
    type: `route.${word}`,
    status,
    previousStatus: snapshot?.status ?? null,
    changes,
    skipped: false,
    regression: false,
  });
  if (snapshot === null) {
    const changes = Object.keys(raw).filter((key) => !SILENT.has(key));
    return { outcome: 'first', accepted: accepted({}), transition: transition(status, changes) };
  }
  const known = readRoute(snapshot.record);
  const changes = changedMembers(snapshot.record, raw);
  if (known === null || isOtherRoute(known, answer)) {
    return { outcome: 'changed', accepted: accepted({}), transition: transition(status, changes) };
  }
  const reported = known.reportedOutput ?? known.output;
  if (status !== snapshot.status) {
    return {
      outcome: 'changed',
      accepted: accepted({ previousOutput: reported }),
      transition: transition(status, changes),
    };
  }
  // Amounts of one token in other units are not compared: what was reported before says nothing about the new ones.
  if (hasOtherUnits(known, answer)) return { outcome: 'unchanged', accepted: accepted({}) };
  if (answer.output !== null && reported !== null && isBeyond(answer.output, reported, answer.movedBy)) {
    return {
      outcome: 'changed',
      accepted: accepted({ previousOutput: reported }),
      transition: transition('moved', [...new Set([...changes, 'output'])]),
    };
  }
  const { previousOutput } = known;
  const silent = accepted({
    previousOutput,
    ...(reported === null || reported === answer.output ? {} : { reportedOutput: reported }),
  });
  const isSame = canonicalJson(silent.record) === canonicalJson(snapshot.record);
  return { outcome: 'unchanged', accepted: isSame ? null : silent };
}

/** True when the config means another route by the same name now: then nothing about the old one says anything. */
function isOtherRoute(known: RouteSummary, answer: RouteSummary): boolean {
  return asked(known) !== asked(answer);
}

/** True when two answers count the output in tokens of different decimals, as far as both are known. */
function hasOtherUnits(known: RouteSummary, answer: RouteSummary): boolean {
  const [before, after] = [known.destination.decimals, answer.destination.decimals];
  return before !== null && after !== null && before !== after;
}

function asked({ source, destination, amount, funder, recipient }: RouteSummary): string {
  const ends = [source, destination].map(({ chainId, token }) => ({ chainId, token }));
  return canonicalJson([...ends, amount, funder, recipient]);
}

function changedMembers(stored: JsonObject, raw: JsonObject): string[] {
  return Object.keys(raw).filter(
    (key) => !SILENT.has(key) && canonicalJson(stored[key] ?? null) !== canonicalJson(raw[key] ?? null),
  );
}
