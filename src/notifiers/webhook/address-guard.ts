import type { LookupAddress, LookupOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { isRefusedAddress } from '../../config/refused-addresses.ts';

/** A connection was not made, because the address is one that receivers must not have. */
class RefusedAddressError extends Error {
  readonly code = 'ADDRESS_REFUSED';
}

/**
 * A connector for undici that checks the address it connects to, after DNS, so that a name cannot point a receiver
 * at the inside of the network. Every connection of the pool goes through it. A name is asked for once, and the
 * connection goes to the very addresses that were checked: a name that is public when checked and private when
 * connected to gains nothing.
 */
export function guardedConnector({
  lookup,
  ...options
}: buildConnector.BuildOptions & { lookup: LookupFunction }): buildConnector.connector {
  const connect = buildConnector({ ...options, lookup: guardedLookup(lookup) });
  return (target, callback) => {
    // A literal address is connected to without a lookup; undici has taken the brackets of IPv6 away.
    if (isIP(target.hostname) !== 0 && isRefusedAddress(target.hostname)) {
      callback(refusedAddress([target.hostname]), null);
      return;
    }
    return connect(target, callback);
  };
}

function guardedLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    const all: LookupOptions & { all: true } = { ...options, all: true };
    lookup(hostname, all, (error, found) => {
      if (error) return callback(error, []);
      const answers = typeof found === 'string' ? [] : found;
      const allowed = answers.filter(({ address }) => !isRefusedAddress(address));
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
    `private or reserved address (${found}); only allowPrivateNetwork permits it`,
  );
}
