import { z } from 'zod';
import { evidenceWeight, type LogOwner, REMOVED_WEIGHT } from '../domain/proof/log-owner.ts';
import { PAYMENTS, type Payment, PROOF, type Proof } from '../domain/proof/proof.ts';
import { type Stated, statementPrint } from '../domain/proof/statement.ts';
import { asSubjectId, foldHex, type SubjectId } from '../domain/subjects/subject.ts';
import { INTEGER_TEXT, JSON_TEXT } from './stored.ts';

/** All states of a check; each but `waiting` is an end. */
export const CHECK_STATES = ['waiting', 'verified', 'disputed', 'unproven', 'unchecked'] as const;

export type CheckState = (typeof CHECK_STATES)[number];

/** The stored statement. Its rightful recipients are determined anew at each request. */
const STATED = z.object({
  subject: z.string().transform(asSubjectId),
  intentHash: z.string().nullable(),
  payment: z.enum(PAYMENTS),
  chainId: z.string(),
  txHash: z.string(),
  token: z.string().nullable(),
  amount: z.string().nullable(),
  sent: z.string().nullable().default(null),
});

/** The last response of one endpoint: its outcome as one name, and the reason where it failed. */
const LAST_STATE = z.object({ endpoint: z.string(), outcome: z.string(), reason: z.string().optional() });

const TIME_OR_NONE = z.union([z.literal('').transform(() => null), INTEGER_TEXT]);

/** The stored hash of a check. */
export const STORED_CHECK = z.object({
  statement: JSON_TEXT.pipe(STATED),
  state: z.enum(CHECK_STATES),
  /** Reason of the wait, or of the state `unchecked`; "" where there is none to name. */
  because: z.string(),
  /** The pair of chains, as the metrics name it; "" where it is not known. */
  corridor: z.string().default(''),
  /** The upstream's own time of the record that stated it, Unix seconds. */
  updatedAt: TIME_OR_NONE.default(null),
  /** Time of the event that stated it (Redis time, ms); the times below have the same unit. */
  statedAt: INTEGER_TEXT,
  /** Time since which it is requested anew because of a log; null where it never was. */
  since: TIME_OR_NONE.default(null),
  polls: INTEGER_TEXT,
  /** Number of times in a row that it ended in an error. */
  failed: INTEGER_TEXT.default(0),
  polledAt: TIME_OR_NONE.default(null),
  /** Last time that an endpoint had it in a block; null where none ever had. */
  seenAt: TIME_OR_NONE.default(null),
  endedAt: TIME_OR_NONE.default(null),
  responses: JSON_TEXT.pipe(z.array(LAST_STATE)).default([]),
  proof: JSON_TEXT.pipe(PROOF).nullable().default(null),
});

export type LastState = z.infer<typeof LAST_STATE>;

/** A stored check. */
export type Check = Omit<z.output<typeof STORED_CHECK>, 'proof'> & { id: string; proof: Proof | null };

/** A statement of an event, to become a check. `sequence` is that of the event. */
export type NewCheck = {
  stated: Stated;
  sequence: number;
  statedAtMs: number;
  updatedAt: number | null;
  corridor: string | null;
};

/** A payment of which an event states nothing, or only `elsewhere`, on a chain that is not checked. */
export type Unstated = {
  unstated: { subject: SubjectId; payment: Payment };
  elsewhere: Stated | null;
  sequence: number;
};

/** Returns the id of a check: one payment of one subject has one. */
export function checkId({ subject, payment }: { subject: SubjectId; payment: Payment }): string {
  return `${subject}|${payment}`;
}

/** Returns the owner of a log, by its check. A check that is removed or unreadable loses no log. */
export function ownerOf(id: string, check: Check | null): LogOwner {
  const subject = asSubjectId(id.slice(0, id.lastIndexOf('|')));
  if (check === null) return { check: id, subject, amount: null, weight: REMOVED_WEIGHT, isOpen: false };
  const { statement, state, proof } = check;
  const { amount, sent } = statement;
  const weight = evidenceWeight({
    isNamed: proof?.checked.includes('intent') ?? false,
    isRightful: proof?.checked.includes('recipient') ?? false,
    isExact: proof?.moved?.[0]?.amount === (amount ?? sent),
  });
  return { check: id, subject, amount, weight, isOpen: state === 'waiting' };
}

/**
 * Returns the name of a transaction in lists of log owners. A log proves one payment in and one out: a delivery may fund the
 * next transfer by its deposit address, but is no refund.
 */
export function txOf({ payment, chainId, txHash }: Stated): string {
  return `${payment === 'source' ? 'in' : 'out'}|${chainId}|${foldHex(txHash)}`;
}

/** Returns a statement of an event, or its lack, in the shape of the scripts. */
export function fedPayment(fed: NewCheck | Unstated): object {
  if ('unstated' in fed) {
    const { unstated, elsewhere, sequence } = fed;
    const print = elsewhere === null ? '' : statementPrint(elsewhere);
    return { id: checkId(unstated), print, sequence };
  }
  const { stated, sequence, statedAtMs, updatedAt, corridor } = fed;
  const fields = ['statement', JSON.stringify(stated), 'statedAt', String(statedAtMs)];
  return {
    id: checkId(stated),
    chain: stated.chainId,
    tx: txOf(stated),
    print: statementPrint(stated),
    sequence,
    fields: [...fields, 'corridor', corridor ?? '', 'updatedAt', String(updatedAt ?? '')],
  };
}
