import type { LookupOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { type AddressRule, permitted, refusalOf } from '../address-rules.ts';

/**
 * A connector for undici that checks the address it connects to, after DNS, so that a name cannot point a receiver
 * at the inside of the network. Every connection of the pool goes through it. A name is requested once, and the
 * connection goes to the very addresses that were checked: a name that is public when checked and private when
 * connected to gains nothing.
 */
export function guardedConnector({
  lookup,
  rules,
  ...options
}: buildConnector.BuildOptions & {
  lookup: LookupFunction;
  rules: readonly AddressRule[];
}): buildConnector.connector {
  return withoutLiterals(buildConnector({ ...options, lookup: guardedLookup(lookup, rules) }), rules);
}

/** A connector that refuses addresses that are given as such, which are connected to without a lookup. */
export function withoutLiterals(
  connect: buildConnector.connector,
  rules: readonly AddressRule[],
): buildConnector.connector {
  return (target, callback) => {
    // undici has taken the brackets of IPv6 away.
    const literals = isIP(target.hostname) === 0 ? [] : [{ address: target.hostname }];
    if (permitted(literals, rules).length < literals.length) {
      callback(refusalOf(literals, rules), null);
      return;
    }
    return connect(target, callback);
  };
}

function guardedLookup(lookup: LookupFunction, rules: readonly AddressRule[]): LookupFunction {
  return (hostname, options, callback) => {
    const all: LookupOptions & { all: true } = { ...options, all: true };
    lookup(hostname, all, (error, found) => {
      if (error) return callback(error, []);
      const answers = typeof found === 'string' ? [] : found;
      const allowed = permitted(answers, rules);
      const [first] = allowed;
      if (first === undefined) return callback(refusalOf(answers, rules), []);
      if (options.all === true) return callback(null, allowed);
      callback(null, first.address, first.family);
    });
  };
}
