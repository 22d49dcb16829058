import { keccak_256 } from '@noble/hashes/sha3.js';

/** Hashes a text in UTF-8 as Ethereum does; returns 64 hex digits. The same function of viem would cost 30 MB of memory. */
export function keccak256(text: string): string {
  return Buffer.from(keccak_256(new TextEncoder().encode(text))).toString('hex');
}
