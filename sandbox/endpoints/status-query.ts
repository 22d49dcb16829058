import { z } from 'zod';
import { INTENT_STATUSES } from '../world/record.ts';
import type { PageQuery } from '../world/wallet-index.ts';
import { decodeCursor } from './cursor.ts';
import type { FieldError } from './problem.ts';

export const EXACT_FILTERS = ['intentHash', 'sourceTxHash', 'destinationTxHash', 'quoteId', 'jobId'] as const;

export type ExactFilter = (typeof EXACT_FILTERS)[number];

/** A valid query of the status endpoint, or its errors. */
export type StatusQuery =
  | { type: 'exact'; filter: ExactFilter; value: string }
  | { type: 'page'; page: PageQuery; issuedMs: number | null }
  | { type: 'invalid'; errors: FieldError[] };

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 50;

const uuid = z.guid({ error: 'Invalid UUID' });
const text = z.string({ error: 'Expected one value' });
const atLeastOneCharacter = text.min(1, { error: 'Must have at least 1 character' });

const querySchema = z.strictObject({
  intentHash: text.optional(),
  sourceTxHash: text.optional(),
  destinationTxHash: text.optional(),
  quoteId: uuid.optional(),
  jobId: uuid.optional(),
  wallet: atLeastOneCharacter.optional(),
  status: z
    .enum(INTENT_STATUSES, { error: `Invalid status, expected one of ${INTENT_STATUSES.join(', ')}` })
    .optional(),
  cursor: atLeastOneCharacter.optional(),
  limit: text
    .regex(/^-?\d{1,9}$/, { error: 'Must be an integer' })
    .transform(Number)
    .pipe(
      z
        .number()
        .min(1, { error: 'Must be at least 1' })
        .max(MAX_LIMIT, { error: `Must be at most ${MAX_LIMIT}` }),
    )
    .default(DEFAULT_LIMIT),
});

/**
 * Reads the query of the status endpoint.
 *
 * The interface does not show the meaning of several filters at once: the sandbox refuses every combination but `status` with
 * `wallet`. An empty exact filter counts as omitted. Paging controls beside an exact filter are checked for form and
 * otherwise ignored.
 */
export function parseStatusQuery(query: unknown): StatusQuery {
  const parsed = querySchema.safeParse(query);
  if (!parsed.success) return invalid(parsed.error.issues.flatMap(fieldErrors));
  const { wallet, status, cursor: cursorText, limit, ...exact } = parsed.data;

  const given = EXACT_FILTERS.filter((filter) => exact[filter]);
  const [filter, another] = wallet === undefined ? given : [...given, 'wallet' as const];
  if (another !== undefined) {
    return invalid([{ field: another, detail: `Cannot be combined with ${filter}` }]);
  }
  if (status !== undefined && wallet === undefined) {
    const detail = 'status narrows a collection and must be combined with wallet';
    return invalid([{ field: 'status', detail }]);
  }
  if (wallet === undefined) {
    const [exactFilter] = given;
    const value = exactFilter && exact[exactFilter];
    if (exactFilter !== undefined && value) return { type: 'exact', filter: exactFilter, value };
    const detail = `Provide one of ${EXACT_FILTERS.join(', ')}, wallet; paging controls alone are not a filter`;
    return invalid([{ field: 'query', detail }]);
  }

  const narrowed = { wallet, status: status ?? null };
  if (cursorText === undefined)
    return { type: 'page', page: { ...narrowed, before: null, limit }, issuedMs: null };
  const cursor = decodeCursor(cursorText, narrowed);
  if (cursor === null) return invalid([{ field: 'cursor', detail: 'Invalid cursor' }]);
  return { type: 'page', page: { ...narrowed, before: cursor.before, limit }, issuedMs: cursor.issuedMs };
}

function invalid(errors: FieldError[]): StatusQuery {
  return { type: 'invalid', errors };
}

function fieldErrors(issue: z.core.$ZodIssue): FieldError[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ field: key || '(empty)', detail: 'Unknown query parameter' }));
  }
  return [{ field: issue.path.join('.') || 'query', detail: issue.message }];
}
