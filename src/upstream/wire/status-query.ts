type ExactFilter = 'intentHash' | 'sourceTxHash' | 'destinationTxHash' | 'quoteId' | 'jobId';

type WalletFilter = { wallet: string; status?: string; cursor?: string; limit?: number };

/** One exact filter and nothing beside it. */
type Only<Name extends ExactFilter> = { [N in Name]: string } & {
  [N in Exclude<ExactFilter, Name> | keyof WalletFilter]?: never;
};

/**
 * What the status endpoint is asked: one exact filter (`quoteId` and `jobId` are bare UUIDs), or a page of a wallet.
 * `limit` is 1 to 50.
 */
export type StatusQuery =
  | { [Name in ExactFilter]: Only<Name> }[ExactFilter]
  | (WalletFilter & { [Name in ExactFilter]?: never });

/** The path and query of a status look-up. */
export function statusPath(query: StatusQuery): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  return `/v1/intents/status?${parameters}`;
}
