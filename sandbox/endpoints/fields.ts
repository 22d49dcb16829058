import { z } from 'zod';
import type { FieldError } from './problem.ts';

const LARGEST_UINT256 = 2n ** 256n - 1n;

/** An amount in base units: a decimal string from 1 to the largest number of 256 bits. */
export const amount = z
  .string()
  .regex(/^(0|[1-9]\d{0,77})$/, { error: 'expected base units as a decimal string' })
  .transform(BigInt)
  .refine((value) => value > 0n && value <= LARGEST_UINT256, { error: 'expected 1 or more, in 256 bits' });

export const uint256 = z
  .string()
  .regex(/^(0|[1-9]\d{0,77})$/, { error: 'expected a whole number as a decimal string' })
  .transform(BigInt)
  .refine((value) => value <= LARGEST_UINT256, { error: 'expected a number of 256 bits' });

/** Unix seconds in the interface's authorization form: a decimal string, not a number. */
export const decimalSeconds = z.string({ error: 'expected Unix seconds as a decimal string' }).pipe(uint256);

/** Unix seconds, as a decimal string or a number, where the interface shows no payload. */
export const seconds = z.union([uint256, z.int().min(0).transform(BigInt)], {
  error: 'expected Unix seconds as a decimal string',
});

export const chainId = z.int().min(1);

/** The name of an application at the open quoting service and at the vaults (interface, Limits). */
export const dAppId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, {
  error: 'expected 1 to 64 letters, digits, dots, underscores or hyphens',
});

/** An EVM address in any case; becomes lower case, because a wrong checksum is no error here. */
export const evmAddress = z
  .templateLiteral(['0x', z.string()])
  .refine((text) => /^0x[a-fA-F0-9]{40}$/.test(text), { error: 'expected 0x and 40 hex digits' })
  .transform((text): `0x${string}` => `0x${text.slice(2).toLowerCase()}`);

export const bytes32 = z
  .templateLiteral(['0x', z.string()])
  .refine((text) => /^0x[a-fA-F0-9]{64}$/.test(text), { error: 'expected 0x and 64 hex digits' });

export const signature = z
  .string()
  .regex(/^0x[a-fA-F0-9]{130}$/, { error: 'expected 0x and 130 hex digits' });

export const quoteId = z
  .string()
  .regex(/^quote:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, {
    error: 'expected quote: and a UUID',
  })
  .transform((id) => id.slice('quote:'.length).toLowerCase());

export const uint48 = seconds
  .refine((value) => value < 2n ** 48n, { error: 'expected Unix seconds in 48 bits' })
  .transform(Number);

/** The issues of zod about a body as field errors; `hints` name the correct place of an unknown key. */
export function fieldErrors(error: z.ZodError, hints: Readonly<Record<string, string>> = {}): FieldError[] {
  return error.issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') {
      return [{ field: dotted(issue.path) || 'body', detail: issue.message }];
    }
    return issue.keys.map((key) => {
      const field = dotted([...issue.path, key]) || '(empty)';
      const hint = Object.hasOwn(hints, field) ? hints[field] : undefined;
      return { field, detail: hint === undefined ? 'Unknown key' : `Unknown key: ${hint}` };
    });
  });
}

function dotted(path: readonly PropertyKey[]): string {
  return path.map(String).join('.');
}
