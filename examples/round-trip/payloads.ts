import { z } from 'zod';
import { chainField, digitsField } from '../../src/upstream/wire/wire.ts';

const SECONDS = { error: 'Unix seconds' };

/** Unix seconds, as a number or its digits. Sent unchanged. */
const secondsField = z.union(
  [z.int().nonnegative(SECONDS), z.string().regex(/^\d{1,15}$/, SECONDS)],
  SECONDS,
);

const secondsTextField = z.string().regex(/^\d{1,78}$/, { error: 'Unix seconds as digits' });

const evmField = hexField({ bytes: 20 });

const quoteIdField = z.string().regex(/^quote:./, { error: 'a quote id that begins with quote:' });

/** A signature, which may be longer than 65 bytes, as those of contract wallets are. */
const anySignatureField = z
  .string()
  .regex(/^0x([a-fA-F0-9]{2})+$/, { error: 'a signature of 0x and hex digits' });

/** `0x` and this number of bytes in hex. */
function hexField({ bytes }: { bytes: number }) {
  const pattern = new RegExp(`^0x[a-fA-F0-9]{${bytes * 2}}$`);
  return z.string().regex(pattern, { error: `0x and ${bytes * 2} hex digits` });
}

const erc3009 = {
  from: evmField,
  to: evmField,
  value: digitsField,
  validAfter: secondsTextField,
  validBefore: secondsTextField,
  nonce: hexField({ bytes: 32 }),
};

export const erc3009Schema = z.strictObject({
  quoteId: quoteIdField,
  authorization: z.strictObject(erc3009),
  signature: hexField({ bytes: 65 }),
});

export const permit2Schema = z.strictObject({
  quoteId: quoteIdField,
  authorization: z.strictObject({
    owner: evmField,
    spender: evmField,
    token: evmField,
    amount: digitsField,
    nonce: digitsField,
    deadline: secondsField,
  }),
  signature: anySignatureField,
});

/** Permit3 may fund from one or several chains. */
export const permit3Schema = z.strictObject({
  quoteId: quoteIdField,
  authorization: z.strictObject({
    owner: evmField,
    salt: hexField({ bytes: 32 }),
    deadline: secondsField,
    timestamp: secondsField,
    permits: z
      .array(z.strictObject({ chainId: chainField, token: evmField, amount: digitsField, spender: evmField }))
      .min(1),
  }),
  signature: anySignatureField,
});

export const vaultErc3009Schema = z.strictObject({
  chainId: chainField,
  ...erc3009,
  signature: hexField({ bytes: 65 }),
});

export const vaultPermitSchema = z.strictObject({
  chainId: chainField,
  owner: evmField,
  depositAddress: evmField,
  value: digitsField,
  deadline: secondsField,
  signature: hexField({ bytes: 65 }),
});

export const createVaultSchema = z.strictObject({
  sourceChainId: chainField,
  amount: digitsField,
  recipient: z.string().min(1),
  depositor: evmField,
  refundRecipient: evmField.optional(),
});

/** A signed ERC-3009 authorization for a quote. */
export type Erc3009Payload = z.input<typeof erc3009Schema>;

/** A signed Permit2 transfer for a quote. */
export type Permit2Payload = z.input<typeof permit2Schema>;

/** A signed Permit3 for a quote. */
export type Permit3Payload = z.input<typeof permit3Schema>;

/** A signed ERC-3009 authorization for a vault. */
export type VaultErc3009Payload = z.input<typeof vaultErc3009Schema>;

/** A signed EIP-2612 permit for a vault. */
export type VaultPermitPayload = z.input<typeof vaultPermitSchema>;

/** A request for a deposit vault, which `depositor` funds. Amounts are base units. */
export type CreateVaultRequest = z.input<typeof createVaultSchema>;
