import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Answering } from '../control/answer-log.ts';
import { erc3009Data, permit2Data, permit3Data, recoverSigner } from '../world/authorizations.ts';
import { type Token, tokenAt } from '../world/chains.ts';
import type { Fundable, Orders } from '../world/orders.ts';
import type { Submit, Submits } from '../world/submits.ts';
import type { World } from '../world/world.ts';
import {
  amount,
  bytes32,
  chainId,
  decimalSeconds,
  evmAddress,
  fieldErrors,
  quoteId,
  seconds,
  signature,
  uint48,
  uint256,
} from './fields.ts';
import { sendInvalidRequest, sendProblem } from './problem.ts';

/** A scheme's form of an authorization for a quote; null where it does not pay the quote's token. */
type ParsedSubmit = Omit<Submit, 'fundable' | 'payload' | 'signature' | 'owner'> & { claimed: string };

const erc3009Schema = z.strictObject({
  quoteId,
  authorization: z.strictObject({
    from: evmAddress,
    to: evmAddress,
    value: amount,
    validAfter: decimalSeconds,
    validBefore: decimalSeconds,
    nonce: bytes32,
  }),
  signature,
});

const permit2Schema = z.strictObject({
  quoteId,
  authorization: z.strictObject({
    owner: evmAddress,
    spender: evmAddress,
    token: evmAddress,
    amount,
    nonce: uint256,
    deadline: seconds,
  }),
  signature,
});

const permit3Schema = z.strictObject({
  quoteId,
  authorization: z.strictObject({
    owner: evmAddress,
    salt: bytes32,
    deadline: uint48,
    timestamp: uint48,
    permits: z
      .array(
        z.strictObject({
          chainId: chainId.transform(BigInt),
          token: evmAddress,
          amount,
          spender: evmAddress,
        }),
      )
      .min(1)
      .max(50),
  }),
  signature,
});

/** Adds the gasless submits of v1: `202` with a new job, `200` with the existing one. The payer must be the quote's funder. */
export function addGasless(
  app: FastifyInstance,
  {
    world,
    answering,
    orders,
    submits,
  }: { world: World; answering: Answering; orders: Orders; submits: Submits },
): void {
  function addSubmit<B extends { quoteId: string; signature: string }>(
    path: string,
    schema: z.ZodType<B>,
    read: (body: B, token: Token) => Promise<ParsedSubmit | string>,
  ): void {
    app.post(path, async (request, reply) => {
      const parsed = schema.safeParse(request.body);
      if (!parsed.success) return sendInvalidRequest(request, reply, fieldErrors(parsed.error));
      const body = parsed.data;
      const token = fundedToken(orders.quote(body.quoteId));
      if (typeof token === 'string') {
        return sendInvalidRequest(request, reply, [{ field: 'quoteId', detail: token }]);
      }
      const submit = await read(body, token);
      if (typeof submit === 'string') {
        return sendInvalidRequest(request, reply, [{ field: 'authorization.token', detail: submit }]);
      }
      // Fetched again: while the signature was recovered, another submit may have funded the quote.
      const fundable = orders.quote(body.quoteId);
      if (fundable === undefined) throw new Error(`quote ${body.quoteId} has gone`);
      const { claimed, ...rest } = submit;
      const owner = fundable.plan.funder.toLowerCase();
      const mismatch = claimed.toLowerCase() !== owner;
      return answer(request, reply, {
        ...rest,
        // A signer for another owner's tokens does not match the funder either.
        signer: mismatch && rest.signer !== null ? claimed.toLowerCase() : rest.signer,
        fundable,
        owner,
        payload: payloadOf(path, body),
        signature: body.signature.toLowerCase(),
      });
    });
  }

  function answer(request: FastifyRequest, reply: FastifyReply, submit: Submit): FastifyReply {
    const result = submits.submit(submit);
    if (result.type === 'refused') {
      const { code, detail, field } = result;
      const errors = field === undefined ? undefined : [{ field: `authorization.${field}`, detail }];
      return sendProblem(request, reply, { code, detail, errors });
    }
    const record = world.job(result.jobUuid)?.record;
    return answering.sendMade(request, reply, {
      statusCode: result.type === 'queued' ? 202 : 200,
      body: { id: record?.id, type: record?.type, status: record?.status },
    });
  }

  addSubmit('/v1/gasless/submit/erc-3009', erc3009Schema, async ({ authorization, signature }, token) => ({
    claimed: authorization.from,
    signer: await recoverSigner(erc3009Data(token, authorization), signature),
    nonce: erc3009Nonce(token, authorization),
    amount: authorization.value,
    isPermit: false,
    validAfter: authorization.validAfter,
    validUntil: authorization.validBefore - 1n,
  }));
  addSubmit('/v1/gasless/submit/permit2', permit2Schema, async ({ authorization, signature }, token) => {
    if (!isSame(authorization.token, token.address)) {
      return `found ${authorization.token}, expected the quote's ${token.address}`;
    }
    return {
      claimed: authorization.owner,
      signer: await recoverSigner(permit2Data(token.chainId, authorization), signature),
      nonce: `permit2 ${token.chainId} ${authorization.owner} ${authorization.nonce}`.toLowerCase(),
      amount: authorization.amount,
      isPermit: true,
      validAfter: 0n,
      validUntil: authorization.deadline,
    };
  });
  addSubmit('/v1/gasless/submit/permit3', permit3Schema, async ({ authorization, signature }, token) => {
    const permit = authorization.permits.find(
      (candidate) => candidate.chainId === BigInt(token.chainId) && isSame(candidate.token, token.address),
    );
    if (permit === undefined) return `no permit is for ${token.address} on chain ${token.chainId}`;
    return {
      claimed: authorization.owner,
      signer: await recoverSigner(permit3Data(authorization), signature),
      nonce: `permit3 ${authorization.owner} ${authorization.salt}`.toLowerCase(),
      amount: permit.amount,
      isPermit: true,
      validAfter: BigInt(authorization.timestamp),
      validUntil: BigInt(authorization.deadline),
    };
  });
}

/** Identity of an ERC-3009 nonce: it belongs to a token and an owner. */
export function erc3009Nonce(token: Token, { from, nonce }: { from: string; nonce: string }): string {
  return `erc-3009 ${token.chainId} ${token.address} ${from} ${nonce}`.toLowerCase();
}

/** A payload in one form, independent of the order of its keys and the case of its hex. */
export function payloadOf(endpoint: string, body: unknown): string {
  const content = JSON.stringify(body, (_key, value) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  return `${endpoint} ${content}`.toLowerCase();
}

/** The token that funds a quote, or the reason why no signature can fund it. */
function fundedToken(fundable: Fundable | undefined): Token | string {
  if (fundable === undefined) return 'found no quote with this id that was made here';
  const { chain, token } = fundable.plan.source;
  if (chain.kind !== 'evm') return `the quote is funded on ${chain.name}, expected an EVM chain`;
  return tokenAt(chain.chainId, token);
}

function isSame(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase();
}
