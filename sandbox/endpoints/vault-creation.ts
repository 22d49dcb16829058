import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Answering } from '../control/answer-log.ts';
import type { QuoteDesk } from '../quotes/quote-desk.ts';
import { findRoute, type Place, type RouteEnd, refuseAmount } from '../quotes/route.ts';
import { CHAINS, type ChainKind, TOKENS, type Token } from '../world/chains.ts';
import { isAddress } from '../world/identifiers.ts';
import type { Fundable, Orders } from '../world/orders.ts';
import { LEGACY_VAULT_VALIDITY_SECONDS } from '../world/plan.ts';
import { amount, chainId, dAppId, evmAddress, fieldErrors } from './fields.ts';
import { payloadOf } from './gasless.ts';
import { type GatewayRefusal, inWords, refuse } from './problem.ts';

const text = z.string().min(1);

const createSchema = z.strictObject({
  dAppID: dAppId.optional(),
  sourceChainId: chainId,
  destinationChainId: chainId,
  sourceToken: text,
  destinationToken: text,
  amount,
  recipient: text,
  refundRecipient: text.optional(),
});

const legacySchema = z.strictObject({
  dAppID: dAppId.optional(),
  sourceChainId: chainId,
  amount,
  recipient: text,
  depositor: evmAddress,
  refundRecipient: text.optional(),
});

/** A requested vault, whichever generation of the endpoint requested it. */
type VaultOrder = {
  source: RouteEnd;
  destination: RouteEnd;
  amount: bigint;
  recipient: string;
  funder: string | null;
  refundRecipient: string | null;
  validity?: { seconds: number };
};

/**
 * Adds the endpoints that make vaults, in both generations. The legacy one names no destination: the form of the recipient's
 * address decides the kind of its chain, and the vault can be funded for four hours. There, the same body gives the same vault
 * while that is not funded.
 */
export function addVaultCreation(
  app: FastifyInstance,
  { answering, orders, desk }: { answering: Answering; orders: Orders; desk: QuoteDesk },
): void {
  const pending = new Map<string, { chainId: number; address: string }>();

  function make(order: VaultOrder): Fundable | GatewayRefusal {
    const route = findRoute(order);
    if (route.type === 'invalid') return { code: 'invalid-request', message: inWords(route.errors) };
    if (route.type === 'refused') return { code: route.code, message: route.detail };
    const { source, destination } = route;
    if (source.chain.kind !== 'evm') {
      const message = `vaults exist on EVM chains only, found ${source.chain.name}`;
      return { code: 'chain-not-supported', message };
    }
    const refusal = refuseAmount(order.amount, destination.chain);
    if (refusal !== null) return { code: refusal.code, message: refusal.detail };
    const [best] = desk.prices({ type: 'exact-in', amount: order.amount });
    if (best === undefined) return { code: 'solver-error', message: 'no solver returned a quote' };
    const leg = ({ chain, token }: Place, base: bigint) => ({
      chain,
      token: token.address,
      amount: base.toString(),
    });
    const { recipient, funder, refundRecipient, validity } = order;
    const fundable = orders.prepare(
      {
        origin: 'vault',
        funder,
        recipient,
        refundRecipient,
        source: leg(source, order.amount),
        destination: leg(destination, best.price.destinationAmount),
      },
      validity,
    );
    orders.open(fundable);
    return fundable;
  }

  app.post('/v1/deposit-gateway/deposit-addresses', (request, reply) => {
    const parsed = createSchema.safeParse(request.body);
    if (!parsed.success) return refuseBody(reply, parsed.error);
    const { refundRecipient = null, recipient, ...body } = parsed.data;
    const made = make({
      source: {
        chainId: body.sourceChainId,
        token: body.sourceToken,
        addresses: [{ field: 'sourceToken', value: body.sourceToken }, ...refundField(refundRecipient)],
      },
      destination: {
        chainId: body.destinationChainId,
        token: body.destinationToken,
        addresses: [
          { field: 'destinationToken', value: body.destinationToken },
          { field: 'recipient', value: recipient },
        ],
      },
      amount: body.amount,
      recipient,
      // Unknown until somebody funds it.
      funder: refundRecipient,
      refundRecipient,
    });
    if ('code' in made) return refuse(reply, made);
    const { plan } = made;
    const more = { state: 'PENDING', intentHash: plan.intentHash, sourceChainId: plan.source.chain.chainId };
    return created(request, reply, { ...dataOf(made), ...more });
  });

  app.post('/deposit-gateway/v2/depositAddresses', (request, reply) => {
    const parsed = legacySchema.safeParse(request.body);
    if (!parsed.success) return refuseBody(reply, parsed.error);
    const body = parsed.data;
    const key = payloadOf('create', body);
    const earlier = pending.get(key);
    const former = earlier === undefined ? undefined : orders.vault(earlier);
    if (former !== undefined && former.fundedBy === null && !orders.isExpired(former)) {
      return created(request, reply, dataOf(former));
    }
    const destination = legacyDestination(body);
    if (destination === null) {
      const found = JSON.stringify(body.recipient);
      const message = `recipient: found ${found}, expected an address of an EVM chain, Solana or Tron`;
      return refuse(reply, { code: 'invalid-request', message });
    }
    const { refundRecipient = null, recipient, depositor } = body;
    const made = make({
      source: {
        chainId: body.sourceChainId,
        token: usdcOn(body.sourceChainId)?.address ?? '',
        addresses: refundField(refundRecipient),
      },
      destination: {
        chainId: destination.chainId,
        token: destination.address,
        addresses: [{ field: 'recipient', value: recipient }],
      },
      amount: body.amount,
      recipient,
      funder: depositor,
      refundRecipient,
      validity: { seconds: LEGACY_VAULT_VALIDITY_SECONDS },
    });
    if ('code' in made) return refuse(reply, made);
    const data = dataOf(made);
    pending.set(key, { chainId: body.sourceChainId, address: data.vaultAddress });
    return created(request, reply, data);
  });

  function created(request: FastifyRequest, reply: FastifyReply, data: object): FastifyReply {
    return answering.sendMade(request, reply, { statusCode: 201, body: { data } });
  }
}

function refuseBody(reply: FastifyReply, error: z.ZodError): FastifyReply {
  return refuse(reply, { code: 'invalid-request', message: inWords(fieldErrors(error)) });
}

function refundField(refundRecipient: string | null): RouteEnd['addresses'] {
  return refundRecipient === null ? [] : [{ field: 'refundRecipient', value: refundRecipient }];
}

function dataOf({ plan: { vaultAddress, source }, expiresAt }: Fundable) {
  if (vaultAddress === null) throw new Error('the order is no vault');
  return { vaultAddress, amount: source.amount, deadline: expiresAt };
}

const OPTIMISM = 10;
const BASE = 8453;

/** The token that a legacy vault delivers: USDC, on Tron USDT. On EVM chains it is that of Optimism, from there that of Base. */
function legacyDestination(body: { recipient: string; sourceChainId: number }): Token | null {
  const kinds: readonly ChainKind[] = ['evm', 'solana', 'tron'];
  const kind = kinds.find((candidate) => isAddress(body.recipient, candidate));
  if (kind === undefined) return null;
  const other = CHAINS.find((chain) => chain.kind === kind)?.chainId;
  const chain = kind === 'evm' ? (body.sourceChainId === OPTIMISM ? BASE : OPTIMISM) : other;
  return usdcOn(chain) ?? TOKENS.find(({ chainId: on }) => on === chain) ?? null;
}

function usdcOn(chain: number | undefined): Token | undefined {
  return TOKENS.find(({ chainId: on, symbol }) => on === chain && symbol === 'USDC');
}
