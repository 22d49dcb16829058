import { z } from 'zod';

export const baseUnits = z.string().regex(/^\d+$/, { error: 'expected base units as a decimal string' });

/** Unix seconds of this century: milliseconds are too large for it. */
export const unixSeconds = z.int().min(1_000_000_000).max(9_999_999_999);

export const evmAddress = z
  .string()
  .regex(/^0x[a-fA-F0-9]{40}$/, { error: 'expected 0x and 40 hex characters' });

export const anyAddress = z
  .string()
  .regex(/^(0x[a-fA-F0-9]{40}|T?[1-9A-HJ-NP-Za-km-z]{32,44})$/, { error: 'expected an address' });

export const intentHash = z.string().regex(/^0x[a-fA-F0-9]{64}$/, { error: 'expected 0x and 64 hex digits' });

const UUID = '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';

export const prefixedQuote = z
  .string()
  .regex(new RegExp(`^quote:${UUID}$`), { error: 'expected quote: and a UUID' });

export const prefixedJob = z
  .string()
  .regex(new RegExp(`^gasless:${UUID}$`), { error: 'expected gasless: and a UUID' });

export const chainId = z.int().min(1);

export const nonEmpty = z.string().min(1);

export const transaction = z.object({ chainId, txHash: nonEmpty });

export const stepSide = z.object({ token: nonEmpty, amount: baseUnits, chainId });
