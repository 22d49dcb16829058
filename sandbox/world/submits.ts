import type { ProblemCode } from '../endpoints/problem.ts';
import type { Fundable, Orders } from './orders.ts';

/** A signed authorization for a funding. Times are Unix seconds. */
export type Submit = {
  fundable: Fundable;
  /** The whole payload in one form: equal payloads are the same submit, sent again. */
  payload: string;
  signature: string;
  /** The signer, in lower case; null for an impossible signature. */
  signer: string | null;
  /** The required signer, in lower case. */
  owner: string;
  /** Identity that is used once: a scheme, a contract, an owner and a number. */
  nonce: string;
  amount: bigint;
  /** True where a permit precedes the transfer: with an ERC-3009 authorization none does. */
  isPermit: boolean;
  validAfter: bigint;
  /** Last second of its validity. */
  validUntil: bigint;
};

/** A job, queued now or by the same submit before; or the reason for none. */
export type SubmitResult =
  | { type: 'queued'; jobUuid: string }
  | { type: 'existing'; jobUuid: string }
  | { type: 'refused'; code: ProblemCode; detail: string; field?: string };

/** Uses of signed authorizations. */
export type Submits = {
  submit(submit: Submit): SubmitResult;
  isNonceUsed(nonce: string): boolean;
};

/** Creates the record of authorizations. `submit` awaits nothing: of two at once, the second finds the first. */
export function createSubmits({
  orders,
  nowMs,
  newJob,
}: {
  orders: Orders;
  nowMs: () => number;
  newJob: (index: number) => { uuid: string; permitTxHash: string };
}): Submits {
  const byPayload = new Map<string, string>();
  const bySignature = new Map<string, string>();
  const byNonce = new Map<string, string>();
  let queued = 0;

  function refusal(submit: Submit): Extract<SubmitResult, { type: 'refused' }> | null {
    const refuse = (code: ProblemCode, detail: string, field?: string) =>
      ({ type: 'refused', code, detail, ...(field === undefined ? {} : { field }) }) as const;
    const { fundable, signer, owner } = submit;
    if (signer === null) return refuse('invalid-signature', 'no signer can be recovered from the signature');
    if (signer !== owner) return refuse('funder-mismatch', `signed by ${signer}, expected ${owner}`);
    const signatureJob = bySignature.get(submit.signature);
    if (signatureJob !== undefined) {
      return refuse('signature-already-bound', `the signature is bound to gasless:${signatureJob}`);
    }
    const nonceJob = byNonce.get(submit.nonce);
    if (nonceJob !== undefined) return refuse('nonce-used', `the nonce was used by gasless:${nonceJob}`);
    if (fundable.fundedBy !== null) {
      return refuse('signature-already-bound', `already funded by ${fundable.fundedBy}`);
    }
    if (orders.isExpired(fundable)) {
      return refuse('quote-expired', `expired at ${fundable.expiresAt}; request a fresh quote`);
    }
    const nowSeconds = BigInt(Math.floor(nowMs() / 1000));
    if (submit.validUntil < nowSeconds) {
      return refuse('authorization-expired', `the authorization was good until ${submit.validUntil}`);
    }
    if (submit.validAfter > nowSeconds) {
      const detail = `found ${submit.validAfter}, expected a time that has passed`;
      return refuse('invalid-request', detail, 'validAfter');
    }
    const wanted = fundable.plan.source.amount;
    if (submit.amount < BigInt(wanted)) {
      return refuse('amount-too-low', `found ${submit.amount}, expected at least the quoted ${wanted}`);
    }
    return null;
  }

  return {
    submit(submit) {
      const existing = byPayload.get(submit.payload);
      if (existing !== undefined) return { type: 'existing', jobUuid: existing };
      const refused = refusal(submit);
      if (refused !== null) return refused;
      const { uuid, permitTxHash } = newJob(queued++);
      const job = { uuid, permitTxHash: submit.isPermit ? permitTxHash : null };
      byPayload.set(submit.payload, job.uuid);
      bySignature.set(submit.signature, job.uuid);
      byNonce.set(submit.nonce, job.uuid);
      orders.fundByJob(submit.fundable, { job, funder: submit.owner });
      return { type: 'queued', jobUuid: job.uuid };
    },
    isNonceUsed: (nonce) => byNonce.has(nonce),
  };
}
