import type { Block, Found } from '../domain/proof/reading.ts';

/** What an endpoint shows of a transaction that it has. */
export type Observation = Pick<
  Found,
  'block' | 'isFinal' | 'succeeded' | 'moves' | 'fulfilled' | 'isPartial'
>;

/** How transactions of one kind of chain are read at one endpoint. Everything throws EndpointErrors. */
export interface ChainSource {
  /** The id of the chain that the endpoint says it is of. */
  identity(): Promise<string>;
  isSynced(): Promise<boolean>;
  /** The newest block that is final. */
  finalHead(): Promise<Block>;
  /** Null where the endpoint does not have it. `head` was final before this was asked. */
  find(
    txHash: string,
    options: { head: Block; token: string | null; signal?: AbortSignal },
  ): Promise<Observation | null>;
}
