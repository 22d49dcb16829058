import { describe, expect, test } from 'vitest';
import { submitAdvice } from '../../examples/round-trip/submit.ts';
import { type Advice, adviceFor, ERROR_CODES } from '../../src/upstream/client/failure.ts';
import { classify } from '../../src/upstream/client/send-request.ts';

type SubmitAdvice = ReturnType<typeof submitAdvice>;

/** The table of the interface: HTTP status, code, advice for a reader, advice for a submitter. */
const TABLE: [httpStatus: number, code: string, read: Advice, submit: SubmitAdvice][] = [
  [400, 'invalid-request', 'fix', 'fix'],
  [400, 'invalid-parameter', 'fix', 'fix'],
  [400, 'missing-parameter', 'fix', 'fix'],
  [400, 'slippage-out-of-bounds', 'fix', 'fix'],
  [401, 'invalid-api-key', 'fix', 'fix'],
  [401, 'api-key-expired', 'fix', 'fix'],
  [401, 'invalid-signature', 'fix', 'fix'],
  [401, 'authorization-expired', 'fix', 'fix'],
  [403, 'permission-denied', 'never', 'never'],
  [403, 'funder-mismatch', 'fix', 'fix'],
  [404, 'endpoint-not-found', 'fix', 'fix'],
  [404, 'token-not-found', 'fix', 'fix'],
  [409, 'signature-already-bound', 'never', 'never'],
  [409, 'nonce-used', 'never', 'never'],
  [410, 'quote-expired', 'fix', 'fix'],
  [422, 'chain-not-supported', 'fix', 'fix'],
  [422, 'no-route-found', 'fix', 'fix'],
  [422, 'chain-pair-unsupported', 'fix', 'fix'],
  [422, 'amount-too-low', 'fix', 'fix'],
  [422, 'amount-too-high', 'fix', 'fix'],
  [422, 'insufficient-liquidity', 'fix', 'fix'],
  [422, 'simulation-failed', 'fix', 'fix'],
  [429, 'rate-limit-exceeded', 'wait', 'wait'],
  [500, 'internal-error', 'retry-bounded', 'resend-identical'],
  [502, 'solver-error', 'retry-bounded', 'resend-identical'],
  [503, 'solver-timeout', 'retry-bounded', 'resend-identical'],
  [503, 'service-unavailable', 'retry-bounded', 'resend-identical'],
];

function advice(httpStatus: number, problemCode: string | null): Advice {
  const code = classify({ httpStatus, problemCode });
  if (code === null) throw new Error('that is a success');
  return adviceFor({ code, httpStatus, problemCode });
}

describe('the advice', () => {
  test.each(TABLE)('after %i %s is %s for a read or quote, %s for a submit', (status, code, read, submit) => {
    expect(advice(status, code)).toBe(read);
    expect(submitAdvice(advice(status, code))).toBe(submit);
  });

  test('is given for every code of the interface and no other', () => {
    expect(Object.keys(ERROR_CODES).sort()).toEqual(TABLE.map(([, code]) => code).sort());
  });

  test.each(TABLE)('the status alone gives the same failure as %i %s', (httpStatus, problemCode) => {
    expect(classify({ httpStatus, problemCode: null })).toBe(classify({ httpStatus, problemCode }));
  });

  test.each<[number, string | null, Advice, SubmitAdvice]>([
    [403, null, 'fix', 'fix'],
    [409, null, 'never', 'never'],
    [429, null, 'wait', 'wait'],
    [504, null, 'retry-bounded', 'resend-identical'],
    [302, null, 'retry-bounded', 'resend-identical'],
    [500, 'nonce-used', 'retry-bounded', 'resend-identical'],
    [503, 'rate-limit-exceeded', 'retry-bounded', 'resend-identical'],
    [400, 'toString', 'fix', 'fix'],
    [422, 'a-code-of-tomorrow', 'fix', 'fix'],
  ])('after %i with code %j goes by the status: %s, %s', (status, code, read, submit) => {
    expect(advice(status, code)).toBe(read);
    expect(submitAdvice(advice(status, code))).toBe(submit);
  });
});
