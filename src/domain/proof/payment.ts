/** The transactions of a transfer whose hashes its record states. */
export const PAYMENTS = ['destination', 'source', 'refund'] as const;

export type Payment = (typeof PAYMENTS)[number];
