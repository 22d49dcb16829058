import { UNSTATED } from '../domain/subjects/kinds.ts';
import { vaultId } from '../domain/subjects/subject.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { isSameId, strangerFailure } from './asked-id.ts';
import { orUnknown } from './not-found.ts';
import type { Reading } from './reading.ts';

/** Asks for one deposit vault by its address and the chain on which it is funded. */
export async function pollVault(
  client: UpstreamClient,
  vault: { address: string; chainId: number },
  signal: AbortSignal,
): Promise<Reading> {
  const subject = vaultId(vault);
  return orUnknown(subject, async () => {
    const { value, dateMs, httpStatus } = await client.vault(vault, { signal });
    const { vaultAddress, chainId } = value;
    // One address may be a vault on several chains, and how the chain is asked for is an assumption.
    const isOtherChain = chainId !== null && chainId !== vault.chainId;
    if (isOtherChain || (vaultAddress !== null && !isSameId(vaultAddress, vault.address))) {
      const found = `${chainId ?? vault.chainId}:${vaultAddress ?? vault.address}`;
      throw strangerFailure({ endpoint: 'vault', httpStatus, found, expected: subject });
    }
    const record = {
      subject,
      status: value.state ?? UNSTATED,
      updatedAt: null,
      names: value.intentHash === null ? [] : [value.intentHash],
      said: value.raw,
      unreadable: value.unreadable,
    };
    return { records: [record], nextCursor: null, dateMs, unreadable: [] };
  });
}
