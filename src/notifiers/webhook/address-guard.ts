import type { LookupAddress, LookupOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { networkList } from '../../config/fields/networks.ts';
import { isRefusedAddress } from '../../network/refused-addresses.ts';

/** A connection was not made, because the address is one that receivers must not have. */
class RefusedAddressError extends Error {
  readonly code = 'ADDRESS_REFUSED';
}

/** Whether no connection may be made to an IP address. */
type IsRefused = (address: string) => boolean;

/** Refuses private and reserved addresses but for those in these networks. */
export function refusedBeyond(networks: readonly string[]): IsRefused {
  const allowed = networkList(networks);
  return (address) =>
    isRefusedAddress(address) &&
    !(isIP(address) !== 0 && allowed.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6'));
}

/**
 * A connector for undici that checks the address it connects to, after DNS, so that a name cannot point a receiver
 * at the inside of the network. Every connection of the pool goes through it. A name is asked for once, and the
 * connection goes to the very addresses that were checked: a name that is public when checked and private when
 * connected to gains nothing.
 */
export function guardedConnector({
  lookup,
  isRefused,
  ...options
}: buildConnector.BuildOptions & { lookup: LookupFunction; isRefused: IsRefused }): buildConnector.connector {
  return withoutLiterals(buildConnector({ ...options, lookup: guardedLookup(lookup, isRefused) }), isRefused);
}

/** A connector that refuses addresses that are given as such, which are connected to without a lookup. */
export function withoutLiterals(
  connect: buildConnector.connector,
  isRefused: IsRefused,
): buildConnector.connector {
  return (target, callback) => {
    // undici has taken the brackets of IPv6 away.
    if (isIP(target.hostname) !== 0 && isRefused(target.hostname)) {
      callback(refusedAddress([target.hostname]), null);
      return;
    }
    return connect(target, callback);
  };
}

function guardedLookup(lookup: LookupFunction, isRefused: IsRefused): LookupFunction {
  return (hostname, options, callback) => {
    const all: LookupOptions & { all: true } = { ...options, all: true };
    lookup(hostname, all, (error, found) => {
      if (error) return callback(error, []);
      const answers = typeof found === 'string' ? [] : found;
      const allowed = answers.filter(({ address }) => !isRefused(address));
      const [first] = allowed;
      if (first === undefined) return callback(refusedAddress(answers.map(addressOf)), []);
      if (options.all === true) return callback(null, allowed);
      callback(null, first.address, first.family);
    });
  };
}

function addressOf({ address }: LookupAddress): string {
  return address;
}

function refusedAddress(addresses: string[]): RefusedAddressError {
  const found = addresses.join(', ');
  return new RefusedAddressError(
    `private or reserved address (${found}); only allowNetworks or allowPrivateNetwork permits it`,
  );
}
