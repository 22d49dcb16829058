/** The statuses to which the interface can narrow a wallet's pages and in which a transfer is not at its end. */
export const NARROW_STATUSES = ['pending', 'filled', 'expired', 'refundable', 'failed'] as const;

/** What one request for a wallet lists: its first page (`head`), or the transfers in one status. */
export type Listing = 'head' | (typeof NARROW_STATUSES)[number];

export const LISTINGS: readonly Listing[] = ['head', ...NARROW_STATUSES];
