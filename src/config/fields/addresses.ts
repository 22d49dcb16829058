import { createHash } from 'node:crypto';
import { base58, createBase58check } from '@scure/base';
import { z } from 'zod';
import { keccak256 } from '../../domain/keccak256.ts';

/** An address in the form of subject ids, or the expected form. */
export type AddressCheck =
  | { ok: true; kind: 'evm' | 'solana' | 'tron'; address: string }
  | { ok: false; expected: string };

const MAX_LENGTH = 100;
const TRON_LENGTH = 34;
const TRON_VERSION = 0x41;
const SOLANA_BYTES = 32;
const BASE58 = /^[1-9A-HJ-NP-Za-km-z]+$/;
const ANY_KIND = anyKind('wallet');

const base58check = createBase58check((data: Uint8Array) => createHash('sha256').update(data).digest());

/**
 * Checks a wallet address of any kind: EVM with its EIP-55 checksum where the case is mixed, Solana base58 of 32 bytes, Tron
 * base58check. EVM addresses are returned in lower case, others unchanged.
 */
export function checkWallet(text: string): AddressCheck {
  if (/^0x/i.test(text)) return checkEvmAddress(text);
  if (text.length > MAX_LENGTH || !/^[A-Za-z0-9]+$/.test(text)) return { ok: false, expected: ANY_KIND };
  if (/^[0-9a-fA-F]{40}$/.test(text)) return { ok: false, expected: 'an EVM address that begins with 0x' };
  // A Solana address may begin with T too; only the length distinguishes them.
  if (text.startsWith('T') && text.length >= 30 && text.length <= 38) return checkTronAddress(text);
  if (text.length < 28 || text.length > 50) return { ok: false, expected: ANY_KIND };
  return checkSolanaAddress(text);
}

/** Checks an EVM address: `0x`, 40 hex digits, and the EIP-55 checksum where the case is mixed. */
function checkEvmAddress(text: string): AddressCheck {
  const digits = text.slice(2);
  if (!text.startsWith('0x')) return { ok: false, expected: 'an EVM address (0x and 40 hex digits)' };
  if (!/^0x[0-9a-fA-F]*$/.test(text))
    return { ok: false, expected: 'an EVM address with only hex digits (0-9, a-f) after 0x' };
  if (digits.length !== 40) {
    const hint = digits.length === 64 ? ' (64 are an intent or transaction hash)' : '';
    return { ok: false, expected: `an EVM address with 40 hex digits after 0x, not ${digits.length}${hint}` };
  }
  const lower = `0x${digits.toLowerCase()}` as const;
  const mixedCase = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (mixedCase && checksummed(lower) !== text) {
    return {
      ok: false,
      expected: 'an EVM address whose EIP-55 checksum holds (a wrong character, or write it in lower case)',
    };
  }
  return { ok: true, kind: 'evm', address: lower };
}

/** EIP-55: a letter is in upper case where the digit of the hash at its place is 8 or more. */
function checksummed(lower: string): string {
  const digits = lower.slice(2);
  const marks = keccak256(digits);
  return `0x${digits.replace(/[a-f]/g, (letter, at: number) => (Number(`0x${marks[at]}`) < 8 ? letter : letter.toUpperCase()))}`;
}

function checkTronAddress(text: string): AddressCheck {
  if (!BASE58.test(text)) return { ok: false, expected: 'a Tron address (base58 has no 0, O, I or l)' };
  if (decodesTo32Bytes(text)) return { ok: true, kind: 'solana', address: text };
  if (text.length !== TRON_LENGTH) {
    return { ok: false, expected: `a Tron address of ${TRON_LENGTH} characters, not ${text.length}` };
  }
  const payload = decodeBase58check(text);
  if (payload === null) {
    return { ok: false, expected: 'a Tron address whose checksum holds (a wrong character)' };
  }
  if (payload.length !== 21 || payload[0] !== TRON_VERSION) {
    return { ok: false, expected: 'a Tron address with version byte 0x41' };
  }
  return { ok: true, kind: 'tron', address: text };
}

function checkSolanaAddress(text: string): AddressCheck {
  if (!BASE58.test(text)) return { ok: false, expected: 'a Solana address (base58 has no 0, O, I or l)' };
  const bytes = base58.decode(text).length;
  if (bytes !== SOLANA_BYTES) {
    return { ok: false, expected: `a Solana address (base58 of ${SOLANA_BYTES} bytes, not ${bytes})` };
  }
  return { ok: true, kind: 'solana', address: text };
}

function decodesTo32Bytes(text: string): boolean {
  return base58.decode(text).length === SOLANA_BYTES;
}

/** The payload with its version byte; null when the checksum is wrong. */
function decodeBase58check(text: string): Uint8Array | null {
  try {
    return base58check.decode(text);
  } catch {
    return null;
  }
}

/** An address of any kind, read in the form of subject ids; `noun` names its owner. */
export function addressField(noun: 'wallet' | 'token') {
  const check = (text: string): AddressCheck => {
    const checked = checkWallet(text);
    return checked.ok || checked.expected !== ANY_KIND ? checked : { ok: false, expected: anyKind(noun) };
  };
  return z.string({ error: anyKind(noun) }).transform(accept(check));
}

export const walletField = addressField('wallet');

export const evmAddressField = z
  .string({ error: 'an EVM address (0x and 40 hex digits)' })
  .transform(accept(checkEvmAddress));

function anyKind(noun: string): string {
  return `a ${noun} address: EVM (0x and 40 hex digits), Solana (base58 of 32 bytes) or Tron (T…, base58)`;
}

function accept(check: (text: string) => AddressCheck) {
  return (text: string, context: z.RefinementCtx): string => {
    const result = check(text);
    if (result.ok) return result.address;
    context.addIssue({ code: 'custom', message: result.expected });
    return z.NEVER;
  };
}
