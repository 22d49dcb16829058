import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Answering } from '../control/answer-log.ts';
import { erc2612Data, erc3009Data, recoverSigner } from '../world/authorizations.ts';
import { type Token, tokenAt } from '../world/chains.ts';
import type { Fundable, Orders } from '../world/orders.ts';
import { pathOf } from '../world/path.ts';
import type { Submit, Submits } from '../world/submits.ts';
import type { World } from '../world/world.ts';
import {
  amount,
  bytes32,
  chainId,
  decimalSeconds,
  evmAddress,
  fieldErrors,
  seconds,
  signature,
} from './fields.ts';
import { erc3009Nonce, payloadOf } from './gasless.ts';
import { type GatewayRefusal, inWords, refuse } from './problem.ts';

const erc3009Schema = z.strictObject({
  chainId,
  from: evmAddress,
  to: evmAddress,
  value: amount,
  validAfter: decimalSeconds,
  validBefore: decimalSeconds,
  nonce: bytes32,
  signature,
});

const permit = { chainId, owner: evmAddress, value: amount, deadline: seconds, signature };

const erc2612Schema = z.strictObject({ ...permit, spender: evmAddress });

/** The legacy generation names the vault `depositAddress`: it is the permit's spender. */
const legacyPermitSchema = z
  .strictObject({ ...permit, depositAddress: evmAddress })
  .transform(({ depositAddress, ...rest }) => ({ ...rest, spender: depositAddress }));

/**
 * Adds the endpoints that fund vaults gaslessly. Each scheme is accepted at both generations of its path, which are two
 * endpoints: a payload is found again only at the endpoint of its first submit (interface, Errors, 5xx). An owner's EIP-2612
 * permits for a token count from 0: the sandbox stores the number of accepted ones.
 */
export function addVaultSubmits(
  app: FastifyInstance,
  {
    world,
    answering,
    orders,
    submits,
    permitted,
  }: {
    world: World;
    answering: Answering;
    orders: Orders;
    submits: Submits;
    /** Called for each accepted EIP-2612 permit. */
    permitted: (token: Token, owner: string) => void;
  },
): void {
  function refuseBody(reply: FastifyReply, error: z.ZodError): FastifyReply {
    return refuse(reply, { code: 'invalid-request', message: inWords(fieldErrors(error)) });
  }

  function findVault(vault: { chainId: number; address: string }): Fundable | GatewayRefusal {
    const fundable = orders.vault(vault);
    if (fundable !== undefined) return fundable;
    if (world.vault(vault) === undefined) {
      return { code: 'not-found', message: `no vault ${vault.address} on chain ${vault.chainId}` };
    }
    const message = `vault ${vault.address} was not made by a client: it is funded by itself`;
    return { code: 'invalid-request', message };
  }

  function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    { queued = () => {}, ...submit }: Submit & { queued?: () => void },
  ): FastifyReply {
    const result = submits.submit(submit);
    if (result.type === 'queued') queued();
    if (result.type === 'refused') {
      const { code, detail, field } = result;
      return refuse(reply, { code, message: field === undefined ? detail : `${field}: ${detail}` });
    }
    return answering.sendMade(request, reply, {
      statusCode: result.type === 'queued' ? 202 : 200,
      body: { data: world.gatewayJob(result.jobUuid)?.record },
    });
  }

  async function submitErc3009(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const parsed = erc3009Schema.safeParse(request.body);
    if (!parsed.success) return refuseBody(reply, parsed.error);
    const body = parsed.data;
    const vault = { chainId: body.chainId, address: body.to };
    const found = findVault(vault);
    if ('code' in found) return refuse(reply, found);
    const token = tokenOf(found);
    const signer = await recoverSigner(erc3009Data(token, body), body.signature);
    return answer(request, reply, {
      fundable: orders.vault(vault) ?? found,
      payload: payloadOf(pathOf(request), body),
      signature: body.signature.toLowerCase(),
      signer,
      owner: body.from.toLowerCase(),
      nonce: erc3009Nonce(token, body),
      amount: body.value,
      isPermit: false,
      validAfter: body.validAfter,
      validUntil: body.validBefore - 1n,
    });
  }

  async function submitErc2612(
    request: FastifyRequest,
    reply: FastifyReply,
    schema: z.ZodType<z.infer<typeof erc2612Schema>>,
  ): Promise<FastifyReply> {
    const parsed = schema.safeParse(request.body);
    if (!parsed.success) return refuseBody(reply, parsed.error);
    const body = parsed.data;
    const vault = { chainId: body.chainId, address: body.spender };
    const found = findVault(vault);
    if ('code' in found) return refuse(reply, found);
    const token = tokenOf(found);
    const owner = body.owner.toLowerCase();
    const nonceOf = (count: bigint): string =>
      `erc-2612 ${token.chainId} ${token.address} ${owner} ${count}`.toLowerCase();
    const recover = (nonce: bigint): Promise<string | null> =>
      recoverSigner(erc2612Data(token, { ...body, nonce }), body.signature);
    let count = 0n;
    while (submits.isNonceUsed(nonceOf(count))) count += 1n;
    let nonce = count;
    let signer = await recover(count);
    // The body does not name the number of the permit: one signed for an earlier count has used its nonce.
    for (let former = count - 1n; former >= 0n && signer !== owner; former--) {
      if ((await recover(former)) !== owner) continue;
      nonce = former;
      signer = owner;
    }
    return answer(request, reply, {
      fundable: orders.vault(vault) ?? found,
      payload: payloadOf(pathOf(request), body),
      signature: body.signature.toLowerCase(),
      signer,
      owner,
      nonce: nonceOf(nonce),
      amount: body.value,
      isPermit: true,
      validAfter: 0n,
      validUntil: body.deadline,
      queued: () => permitted(token, owner),
    });
  }

  app.post('/v1/deposit-gateway/submit/erc-3009', submitErc3009);
  app.post('/deposit-gateway/v1/gasless/transferWithAuthorization', submitErc3009);
  app.post('/v1/deposit-gateway/submit/erc-2612', (request, reply) =>
    submitErc2612(request, reply, erc2612Schema),
  );
  app.post('/deposit-gateway/v1/gasless/permit', (request, reply) =>
    submitErc2612(request, reply, legacyPermitSchema),
  );
}

function tokenOf({ plan }: Fundable): Token {
  return tokenAt(plan.source.chain.chainId, plan.source.token);
}
