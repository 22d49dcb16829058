import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { isRefusedAddress } from '../../config/refused-addresses.ts';

/** A connection was not made, because the address is one that receivers must not have. */
class RefusedAddressError extends Error {
  readonly code = 'ADDRESS_REFUSED';
}

/**
 * A connector for undici that checks the address it connects to, after DNS, so that a name cannot point a receiver
 * at the inside of the network. Every connection of the pool goes through it.
 */
export function guardedConnector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector({ ...options, lookup: guardedLookup });
  return (target, callback) => {
    // A literal address is connected to without a lookup.
    if (isIP(target.hostname) !== 0 && isRefusedAddress(target.hostname)) {
      callback(refusedAddress([target.hostname]), null);
      return;
    }
    connect(target, callback);
  };
}

const guardedLookup: LookupFunction = (hostname, options, callback) => {
  const all: LookupOptions & { all: true } = { ...options, all: true };
  dnsLookup(hostname, all, (error, found) => {
    if (error) return callback(error, []);
    const allowed = found.filter(({ address }) => !isRefusedAddress(address));
    const [first] = allowed;
    if (first === undefined) return callback(refusedAddress(found.map(addressOf)), []);
    if (options.all === true) return callback(null, allowed);
    callback(null, first.address, first.family);
  });
};

function addressOf({ address }: LookupAddress): string {
  return address;
}

function refusedAddress(addresses: string[]): RefusedAddressError {
  const found = addresses.join(', ');
  return new RefusedAddressError(
    `private or reserved address (${found}); only allowPrivateNetwork permits it`,
  );
}
