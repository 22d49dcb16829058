import { isIP } from 'node:net';
import { networkList } from '../config/fields/http.ts';
import { isRefusedAddress } from '../network/refused-addresses.ts';

/** Decides to which IP addresses a receiver does not connect, and describes the refusal. */
export type AddressRule = {
  isRefused: (address: string) => boolean;
  describe: (addresses: readonly string[]) => string;
};

class RefusedAddressError extends Error {
  readonly code = 'ADDRESS_REFUSED';
}

/** Builds the rule of a webhook's `allowPrivateNetwork` and `allowNetworks`; none where they allow every address. */
export function ownRules({
  allowPrivateNetwork,
  allowNetworks,
}: {
  allowPrivateNetwork: boolean;
  allowNetworks: readonly string[];
}): AddressRule[] {
  if (allowPrivateNetwork) return [];
  return [
    {
      isRefused: refusedBeyond(allowNetworks),
      describe: (addresses) =>
        `private or reserved address (${addresses.join(', ')}); only allowNetworks or allowPrivateNetwork permits it`,
    },
  ];
}

/**
 * Builds the rule of `server.apiReceivers` for a receiver added through the API; none for one of the config. It hides addresses:
 * a user who may add receivers must not learn how internal names resolve.
 */
export function apiRules({ apiNetworks }: { apiNetworks: readonly string[] | null }): AddressRule[] {
  if (apiNetworks === null) return [];
  return [
    {
      isRefused: refusedBeyond(apiNetworks),
      describe: () => 'private or reserved address; only server.apiReceivers.allowNetworks permits it',
    },
  ];
}

/** The addresses that no rule refuses. */
export function permitted<T extends { address: string }>(
  found: readonly T[],
  rules: readonly AddressRule[],
): T[] {
  return found.filter(({ address }) => !rules.some(({ isRefused }) => isRefused(address)));
}

/** Error for a host without a permitted address. The first rule that refuses one of them describes it. */
export function refusalOf(
  found: readonly { address: string }[],
  rules: readonly AddressRule[],
): RefusedAddressError {
  const addresses = found.map(({ address }) => address);
  const rule = rules.find(({ isRefused }) => addresses.some(isRefused)) ?? rules[0];
  return new RefusedAddressError(rule?.describe(addresses) ?? 'the host name has no address');
}

function refusedBeyond(networks: readonly string[]): (address: string) => boolean {
  const allowed = networkList(networks);
  return (address) =>
    isRefusedAddress(address) &&
    !(isIP(address) !== 0 && allowed.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6'));
}
