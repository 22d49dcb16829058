import { z } from 'zod';
import { lieSchema } from '../chains/lies.ts';
import { PROBLEMS, type ProblemCode } from '../endpoints/problem.ts';

/** Scope of every fault: a prefix of paths, and the share of affected answers. */
const scope = {
  path: z.string().startsWith('/', { error: 'expected a path that begins with /' }).default('/'),
  rate: z.number().min(0).max(1).default(1),
};

const ms = z.number().min(0).max(600_000);

const isCode = (text: string): text is ProblemCode => Object.hasOwn(PROBLEMS, text);

const SERVICE_FAULTS = [
  z.strictObject({ type: z.literal('latency'), ms, spreadMs: ms.default(0), ...scope }),
  z.strictObject({
    type: z.literal('error'),
    code: z.string().refine(isCode, { error: "expected a code of the interface's table" }),
    retryAfterSeconds: z.int().min(0).optional(),
    ...scope,
  }),
  z.strictObject({ type: z.literal('bare-error'), status: z.int().min(400).max(599), ...scope }),
  z.strictObject({ type: z.literal('lost-answer'), status: z.int().min(500).max(599), ...scope }),
  z.strictObject({ type: z.literal('html'), ...scope }),
  z.strictObject({ type: z.literal('truncated-body'), ...scope }),
  z.strictObject({ type: z.literal('slow-body'), ms, ...scope }),
  z.strictObject({ type: z.literal('wrong-content-type'), ...scope }),
  z.strictObject({ type: z.literal('key-revoked'), ...scope }),
  z.strictObject({ type: z.literal('clock-skew'), skewSeconds: z.int(), ...scope }),
  z.strictObject({ type: z.literal('stale-reads'), ...scope }),
  z.strictObject({ type: z.literal('not-indexed'), ...scope }),
  z.strictObject({ type: z.literal('partly-indexed'), ...scope }),
  z.strictObject({ type: z.literal('unknown-status'), ...scope }),
  z.strictObject({ type: z.literal('unknown-fields'), ...scope }),
  z.strictObject({ type: z.literal('shuffled-pages'), ...scope }),
  z.strictObject({ type: z.literal('oldest-first'), ...scope }),
  z.strictObject({ type: z.literal('moving-items'), ...scope }),
  z.strictObject({ type: z.literal('expired-cursors'), ...scope }),
  z.strictObject({ type: z.literal('cursor-lifetime'), seconds: z.number().min(0).max(86_400), ...scope }),
  z.strictObject({ type: z.literal('repeated-cursors'), ...scope }),
  z.strictObject({ type: z.literal('regressions'), ...scope }),
] as const;

const CHAIN_FAULTS = [
  z.strictObject({ type: z.literal('payment'), lie: lieSchema, ...scope }),
  z.strictObject({ type: z.literal('null-answers'), ...scope }),
  z.strictObject({
    type: z.literal('lagging-head'),
    seconds: z.number().min(-31_536_000).max(31_536_000),
    ...scope,
  }),
  z.strictObject({ type: z.literal('amount-disagreement'), ...scope }),
  z.strictObject({ type: z.literal('block-disagreement'), ...scope }),
  z.strictObject({ type: z.literal('receipt-disagreement'), ...scope }),
  z.strictObject({ type: z.literal('other-chain'), ...scope }),
  z.strictObject({ type: z.literal('unknown-tags'), ...scope }),
  z.strictObject({ type: z.literal('rpc-error'), code: z.int().default(-32005), ...scope }),
] as const;

export const SERVICE_FAULT_TYPES: readonly string[] = SERVICE_FAULTS.map(({ shape }) => shape.type.value);

export const faultSchema = z.discriminatedUnion('type', [...SERVICE_FAULTS, ...CHAIN_FAULTS], {
  error: 'expected a type of fault, see docs/sandbox.md',
});

export type Fault = z.infer<typeof faultSchema>;

export type FaultType = Fault['type'];

/** A fault of one type. */
export type FaultOf<T extends FaultType> = Extract<Fault, { type: T }>;
