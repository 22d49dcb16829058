import type { z } from 'zod';

/** An error that a method answers in place of a result. */
export class RpcError extends Error {
  readonly code: number;
  /** The data of a reverted call. */
  readonly data: string | undefined;

  constructor(code: number, message: string, data?: string) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** A parameter parsed by this schema. Throws `RpcError` -32602 when it does not fit. */
export function param<T>(params: readonly unknown[], index: number, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(params[index]);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new RpcError(-32602, `invalid argument ${index}: ${issue?.message ?? 'not understood'}`);
}
