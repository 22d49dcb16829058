/**
 * What is known of how a transfer was funded. `open`: that is still checked; `proved`: by the block of the payment that
 * funded it, with whoever paid where the chain tells; `said`: since when the upstream called it under way; null: nothing.
 */
export type Funding =
  | { known: 'open' }
  | { known: 'proved'; atMs: number; payer: string | null }
  | { known: 'said'; atMs: number }
  | null;

/**
 * By so much a payment may be older than what funded it, or than the statement of it, and still be meant: the clocks of two
 * chains differ, and a funding that was reorganised stands in a later block.
 */
const TOLERANCE_MS = 3_600_000;

/**
 * True when what pays out is as young as its transfer. A statement is never older than the funding of its transfer, so that
 * what is hardly older than its statement fits.
 *
 * | the block is ...                                            | then                                           |
 * |-------------------------------------------------------------|------------------------------------------------|
 * | at most an hour older than the statement                    | `fits`                                         |
 * | older, and the funding is still checked                     | `open`                                         |
 * | an hour older than the block that funded it                 | `older`: it is the payment of something else   |
 * | an hour older than the upstream called it under way         | `said-older`: only the upstream's word         |
 * | not so much older than either                               | `fits`                                         |
 * | older than the statement, and of the funding nothing known  | `unknown`                                      |
 */
export function ageOf(
  blockMs: number,
  { funding, statedAtMs }: { funding: Funding; statedAtMs: number },
): 'fits' | 'open' | 'older' | 'said-older' | 'unknown' {
  if (blockMs >= statedAtMs - TOLERANCE_MS) return 'fits';
  if (funding === null) return 'unknown';
  if (funding.known === 'open') return 'open';
  if (blockMs >= funding.atMs - TOLERANCE_MS) return 'fits';
  return funding.known === 'proved' ? 'older' : 'said-older';
}
