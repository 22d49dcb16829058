import type { LogOwner } from '../../src/domain/proof/log-owner.ts';
import type { Found, Move, TxState } from '../../src/domain/proof/proof.ts';
import type { Statement } from '../../src/domain/proof/statement.ts';
import type { JudgeRules } from '../../src/domain/proof/verdict.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';

export const TOKEN = `0x${'70'.repeat(20)}`;
export const SOLVER = `0x${'50'.repeat(20)}`;
export const ALICE = `0x${'a1'.repeat(20)}`;
export const BOB = `0x${'b0'.repeat(20)}`;
export const INTENT = `0x${'1e'.repeat(32)}`;
export const TX = `0x${'7e'.repeat(32)}`;

/** The time of the upstream's statement. */
export const STATED_AT = 1_795_174_224;

/** Alice was paid 1,000. */
export function statement(fields: Partial<Statement> = {}): Statement {
  return {
    subject: intentId(INTENT),
    intentHash: INTENT,
    payment: 'destination',
    chainId: '8453',
    txHash: TX,
    token: TOKEN,
    amount: '1000',
    sent: null,
    recipients: [ALICE],
    ...fields,
  };
}

export function move(fields: Partial<Move> = {}): Move {
  return { token: TOKEN, from: SOLVER, to: ALICE, amount: '1000', index: 3, ...fields };
}

export function block(number: number, fields: { hash?: string; timestamp?: number } = {}) {
  const hash = fields.hash ?? `0x${number.toString(16).padStart(64, '0')}`;
  return { number: String(number), hash, timestamp: fields.timestamp ?? STATED_AT + number - 100 };
}

/** The response of an endpoint that found it in block 100, with its final head at 110. */
export function found(endpoint: string, fields: Partial<Found> = {}): TxState {
  return {
    endpoint,
    host: endpoint,
    outcome: 'found',
    block: block(100),
    head: block(110),
    isFinal: true,
    succeeded: true,
    moves: [move()],
    fulfilled: null,
    ...fields,
  };
}

/** The response of an endpoint that does not have it; its final head is `secondsPast` after the statement. */
export function absent(endpoint: string, secondsPast = -10, isSynced = true): TxState {
  const head = block(100 + secondsPast);
  return { endpoint, host: endpoint, outcome: 'absent', isSynced, head };
}

export function failed(endpoint: string): TxState {
  return { endpoint, host: endpoint, outcome: 'failed', reason: `${endpoint}: no connection` };
}

/** The rules a minute after the statement: the token is listed, and no log is claimed. */
export function rules(fields: Partial<JudgeRules> = {}): JudgeRules {
  return {
    ownerOf: () => null,
    funding: null,
    burn: null,
    rememberedMs: 30 * 86_400_000,
    isListed: (token) => token === TOKEN,
    isCheckable: () => true,
    statedAtMs: STATED_AT * 1_000,
    nowMs: (STATED_AT + 60) * 1_000,
    ...fields,
  };
}

/** The logOwner of another transfer on all of a log whose recipient is known. */
export function logOwner(fields: Partial<LogOwner> = {}): LogOwner {
  const subject = intentId(`0x${'22'.repeat(32)}`);
  return { check: `${subject}|destination`, subject, amount: '1000', weight: 3, isOpen: false, ...fields };
}
