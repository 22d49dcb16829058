import { z } from 'zod';
import {
  anySignatureField,
  chainField,
  digitsField,
  evmField,
  hexField,
  quoteIdField,
  secondsField,
  secondsTextField,
} from './payload.ts';

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

/** `spender` is the vault. */
export const vaultErc2612Schema = z.strictObject({
  chainId: chainField,
  owner: evmField,
  spender: evmField,
  value: digitsField,
  deadline: secondsField,
  signature: hexField({ bytes: 65 }),
});

export const createVaultSchema = z.strictObject({
  sourceChainId: chainField,
  destinationChainId: chainField,
  sourceToken: z.string().min(1),
  destinationToken: z.string().min(1),
  amount: digitsField,
  recipient: z.string().min(1),
  refundRecipient: z.string().min(1).optional(),
});

/** A signed ERC-3009 authorization for a quote. */
export type Erc3009Payload = z.input<typeof erc3009Schema>;

/** A signed Permit2 transfer for a quote. */
export type Permit2Payload = z.input<typeof permit2Schema>;

/** A signed Permit3 for a quote. */
export type Permit3Payload = z.input<typeof permit3Schema>;

/** A signed ERC-3009 authorization for a vault, the same in both generations of paths. */
export type VaultErc3009Payload = z.input<typeof vaultErc3009Schema>;

/** A signed EIP-2612 permit for a vault. */
export type VaultErc2612Payload = z.input<typeof vaultErc2612Schema>;

/** A request for a deposit vault. Amounts are base units. */
export type CreateVaultRequest = z.input<typeof createVaultSchema>;
