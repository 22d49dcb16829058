import { createHash } from 'node:crypto';
import { type BytesCoder, base58, createBase58check } from '@scure/base';
import { bytesToHex, getAddress } from 'viem';
import type { ChainKind } from './chains.ts';
import { bytes, type Random } from './random.ts';

const base58check = createBase58check(
  (data: Uint8Array) => new Uint8Array(createHash('sha256').update(data).digest()),
);

/** Tron's prefix byte of addresses; it makes the text begin with T. */
const TRON_ADDRESS_PREFIX = 0x41;

/** A valid address of this kind: checksummed hex, 32 bytes in base58, or Tron's base58check. */
export function address(random: Random, kind: ChainKind): string {
  switch (kind) {
    case 'evm':
      return getAddress(bytesToHex(bytes(random, 20)));
    case 'solana':
      return base58.encode(bytes(random, 32));
    case 'tron':
      return base58check.encode(Uint8Array.of(TRON_ADDRESS_PREFIX, ...bytes(random, 20)));
    default:
      return kind satisfies never;
  }
}

/** A transaction hash as this kind of chain writes it: `0x` hex, a base58 signature of 64 bytes, or bare hex. */
export function transactionHash(random: Random, kind: ChainKind): string {
  switch (kind) {
    case 'evm':
      return bytesToHex(bytes(random, 32));
    case 'solana':
      return base58.encode(bytes(random, 64));
    case 'tron':
      return bytesToHex(bytes(random, 32)).slice(2);
    default:
      return kind satisfies never;
  }
}

export function intentHash(random: Random): string {
  return bytesToHex(bytes(random, 32));
}

export function uuid(random: Random): string {
  const raw = bytes(random, 16);
  raw[6] = ((raw[6] ?? 0) & 0x0f) | 0x40;
  raw[8] = ((raw[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytesToHex(raw).slice(2);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** True when a text is an address of this kind; EVM addresses in any case. */
export function isAddress(text: string, kind: ChainKind): boolean {
  switch (kind) {
    case 'evm':
      return /^0x[0-9a-fA-F]{40}$/.test(text);
    case 'solana':
      return decoded(base58, text)?.length === 32;
    case 'tron': {
      const raw = decoded(base58check, text);
      return raw?.length === 21 && raw[0] === TRON_ADDRESS_PREFIX;
    }
    default:
      return kind satisfies never;
  }
}

/** Bytes of an address: 32 of Solana, else 20. Throws for a text that is none of this kind. */
export function addressBytes(text: string, kind: ChainKind): Uint8Array {
  if (!isAddress(text, kind)) throw new Error(`found ${text}, expected an address of kind ${kind}`);
  if (kind === 'evm') return Uint8Array.from(Buffer.from(text.slice(2), 'hex'));
  return kind === 'solana' ? base58.decode(text) : base58check.decode(text).slice(1);
}

function decoded(coder: BytesCoder, text: string): Uint8Array | null {
  // Decoding takes time that grows with the square of the length; no address is longer.
  if (text.length > 64) return null;
  try {
    return coder.decode(text);
  } catch {
    return null;
  }
}

/** The lookup key of an address, hash or UUID: only `0x` hex is case-insensitive. */
export function lookupKey(text: string): string {
  return /^0x[0-9a-fA-F]+$/.test(text) ? text.toLowerCase() : text;
}
