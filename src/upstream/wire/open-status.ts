import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { foldHex } from '../../domain/subjects/subject.ts';
import { kindOf, type Parsed, passedMember, textMember, textOrNull } from './wire.ts';

/** The status of an intent at the open source. */
export type OpenStatus = {
  /** In the words of v1 where it has one; any other word as it came. */
  status: string;
  /** Hashes of intents that the answer names as its own; empty where it names none. */
  intentHashes: string[];
  /** `data` of the answer, whole. */
  raw: JsonObject;
};

export const OPEN_STATUS_EXPECTED =
  'HTTP 200 or 201 with a JSON object { data } of an intent with its status';

/** The words of a status may be in any nesting: its own members are no members of the record. */
const RECORD = z.object({
  status: z.unknown().refine((status) => status !== undefined && status !== null),
  subStatus: passedMember,
  intentHash: textMember.nullish(),
  intentCreated: passedMember,
  fulfillment: passedMember,
  refund: passedMember,
});

/** The schema of an answer. */
export const OPEN_STATUS = z.object({ data: z.union([RECORD, z.array(RECORD)]) });

/** The sub-statuses that were seen, folded, and the words of v1 for them. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['waitingtofulfill', 'pending'],
  ['waitingforrefund', 'refundable'],
  ['fulfilled', 'filled'],
  ['refunded', 'refunded'],
]);

/** The statuses around the sub-statuses, folded. */
const PHASES: readonly string[] = ['pending', 'completed'];

/** Members that hold a word, and are none themselves, folded. */
const LABELS: readonly string[] = ['status', 'substatus', 'state', 'substate', 'type', 'value'];

/** The words in a status are few, and near its top. */
const MOST_WORDS = 16;
const MOST_LEVELS = 4;

/** Reads an answer of `intentStatus`: an object, or a list of one, whose status may be a text or an object in any nesting. */
export function readOpenStatus(body: JsonValue): Parsed<OpenStatus> {
  if (!isJsonObject(body)) return { mismatch: `${kindOf(body)} as the body` };
  const data = Array.isArray(body.data) && body.data.length === 1 ? body.data[0] : body.data;
  if (!isJsonObject(data)) return { mismatch: `${kindOf(data)} as data` };
  const beside = Object.entries(data).find(([name]) => fold(name) === 'substatus')?.[1];
  const words = [...wordsOf(data.status), ...wordsOf(beside)];
  const mapped = new Set(words.flatMap((word) => WORDS.get(fold(word)) ?? []));
  if (mapped.size > 1) return { mismatch: `${mapped.size} sub-statuses as data.status` };
  const [status = wordOf(words)] = mapped;
  if (status === null) return { mismatch: `${kindOf(data.status)} as data.status` };
  return { value: { status, intentHashes: intentHashesOf(data), raw: data } };
}

/** The word of a status without one of these sub-statuses: the last one that is more than a phase, else the phase. */
function wordOf(words: readonly string[]): string | null {
  return words.findLast((word) => !PHASES.includes(fold(word))) ?? words.at(-1) ?? null;
}

/**
 * The words of a status, from the outside in: texts, and names of members that are set. Details beside them, such as times and
 * hashes, are no words.
 */
function wordsOf(status: JsonValue | undefined): string[] {
  const words: string[] = [];
  const visit = (value: JsonValue | undefined, level: number): void => {
    if (words.length >= MOST_WORDS || level > MOST_LEVELS) return;
    const text = textOrNull(value);
    if (text !== null) words.push(text);
    if (!isJsonObject(value)) return;
    const members = Object.entries(value).filter(([, inner]) => inner !== null && inner !== false);
    for (const [name, inner] of members.slice(0, MOST_WORDS)) {
      const isLabel = LABELS.includes(fold(name));
      const isTag = members.length === 1 && !isLabel && (inner === true || isJsonObject(inner));
      const isWord = isTag || PHASES.includes(fold(name)) || WORDS.has(fold(name));
      if (isWord) words.push(name);
      if (isWord || isLabel) visit(inner, level + 1);
    }
  };
  visit(status, 0);
  return words;
}

/** A word without case, spaces, hyphens and underscores. */
function fold(word: string): string {
  return word
    .slice(0, 100)
    .toLowerCase()
    .replace(/[\s_-]/g, '');
}

function intentHashesOf({ intentHash, intentCreated }: JsonObject): string[] {
  const named = [intentHash, isJsonObject(intentCreated) ? intentCreated.intentHash : undefined];
  return named.flatMap((value) => {
    const hash = textOrNull(value);
    return hash === null ? [] : [foldHex(hash)];
  });
}
