import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isPrivateHost, networkList } from '../../src/config/fields/http.ts';
import { isRefusedAddress } from '../../src/network/refused-addresses.ts';

/** The blocks of the IANA special-purpose registries that are not reachable globally, and multicast: first and last number. */
const SPECIAL_V4: readonly [first: number, last: number][] = [
  [0x00000000, 0x00ffffff],
  [0x0a000000, 0x0affffff],
  [0x64400000, 0x647fffff],
  [0x7f000000, 0x7fffffff],
  [0xa83f8110, 0xa83f8110],
  [0xa9fe0000, 0xa9feffff],
  [0xac100000, 0xac1fffff],
  [0xc0000000, 0xc00000ff],
  [0xc0000200, 0xc00002ff],
  [0xc0586300, 0xc05863ff],
  [0xc0a80000, 0xc0a8ffff],
  [0xc6120000, 0xc613ffff],
  [0xc6336400, 0xc63364ff],
  [0xcb007100, 0xcb0071ff],
  [0xe0000000, 0xffffffff],
];

/** The same of IPv6, by the first 32 of 128 bits. */
const SPECIAL_V6: readonly [first: number, last: number][] = [
  [0x00000000, 0x1fffffff],
  [0x20010000, 0x200101ff],
  [0x20010db8, 0x20010db8],
  [0x20020000, 0x2002ffff],
  [0x3fff0000, 0x3fff0fff],
  [0x40000000, 0xffffffff],
];

const isSpecial = (blocks: typeof SPECIAL_V4, number: number): boolean =>
  blocks.some(([first, last]) => first <= number && number <= last);

/** Any number of 32 bits, and often one at the edge of a block, or just beyond. */
const near = (blocks: typeof SPECIAL_V4) =>
  fc.oneof(
    fc.integer({ min: 0, max: 0xffffffff }),
    fc
      .tuple(fc.constantFrom(...blocks.flat()), fc.integer({ min: -1, max: 1 }))
      .map(([edge, by]) => Math.min(0xffffffff, Math.max(0, edge + by))),
  );

const dotted = (number: number): string => [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');
const groups = (number: number): string =>
  [number >>> 16, number & 0xffff].map((group) => group.toString(16)).join(':');

const SPELLINGS: readonly ((number: number) => string)[] = [
  dotted,
  String,
  (number) => `0x${number.toString(16)}`,
  (number) => `0${number.toString(8)}`,
  (number) => `${number >>> 24}.${number & 0xffffff}`,
  (number) => `0x${(number >>> 24).toString(16)}.0${((number >>> 16) & 255).toString(8)}.${number & 0xffff}`,
  (number) => `${dotted(number)}.`,
  (number) => `[::ffff:${dotted(number)}]`,
  (number) => `[0:0:0:0:0:FFFF:${groups(number)}]`,
  (number) => `[64:ff9b::${groups(number)}]`,
];

test('an IPv4 address is refused exactly when a special-purpose block has it, however it is written', () => {
  fc.assert(
    fc.property(near(SPECIAL_V4), fc.constantFrom(...SPELLINGS), (number, spell) => {
      expect(isRefusedAddress(dotted(number))).toBe(isSpecial(SPECIAL_V4, number));
      expect(isPrivateHost(new URL(`https://${spell(number)}/`))).toBe(isSpecial(SPECIAL_V4, number));
    }),
  );
});

test('an IPv6 address that embeds no IPv4 address is refused exactly when a special-purpose block has it', () => {
  const low = fc.integer({ min: 0, max: 0xffffffff });
  fc.assert(
    fc.property(near(SPECIAL_V6), low, low, low, (head, second, third, fourth) => {
      const isMapped = head === 0 && second === 0 && third === 0xffff;
      const isNat64 = head === 0x64ff9b && second === 0 && third === 0;
      fc.pre(!isMapped && !isNat64);
      const address = [head, second, third, fourth].map(groups).join(':');
      expect(isRefusedAddress(address)).toBe(isSpecial(SPECIAL_V6, head));
      expect(isPrivateHost(new URL(`https://[${address}]/`))).toBe(isSpecial(SPECIAL_V6, head));
    }),
  );
});

test('an IPv6 address that wraps an IPv4 address in a way that is not public is refused, whichever it wraps', () => {
  fc.assert(
    fc.property(near(SPECIAL_V4), (number) => {
      const [high, low] = groups(number).split(':');
      for (const address of [
        `::${groups(number)}`,
        `::ffff:0:${groups(number)}`,
        `2002:${high}:${low}::1`,
        `2001:0:${high}:${low}::1`,
        `64:ff9b:1::${groups(number)}`,
      ]) {
        expect([address, isRefusedAddress(address)]).toEqual([address, true]);
      }
    }),
  );
});

test('an IPv4 network permits an address of it also where IPv6 maps it, and no other address', () => {
  fc.assert(
    fc.property(
      near(SPECIAL_V4),
      near(SPECIAL_V4),
      fc.integer({ min: 1, max: 32 }),
      (base, other, prefix) => {
        const list = networkList([`${dotted(base)}/${prefix}`]);
        const isInside = base >>> (32 - prefix) === other >>> (32 - prefix);
        expect(list.check(dotted(other), 'ipv4')).toBe(isInside);
        expect(list.check(`::ffff:${groups(other)}`, 'ipv6')).toBe(isInside);
      },
    ),
  );
});
