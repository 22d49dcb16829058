/** A stream of numbers in [0, 1), fixed by its seed. */
export type Random = () => number;

/** The stream named by its parts. Each transfer has its own, so its content does not depend on earlier draws. */
export function randomStream(...parts: (string | number)[]): Random {
  return sfc32(seedWords(parts.join('/')));
}

/** An integer from 0 up to, but not including, `below`. */
export function integer(random: Random, below: number): number {
  return Math.floor(random() * below);
}

export function chance(random: Random, probability: number): boolean {
  return random() < probability;
}

/** A number from `low` to `high`, uniformly distributed. */
export function between(random: Random, low: number, high: number): number {
  return low + random() * (high - low);
}

export function pick<T>(random: Random, list: readonly T[]): T {
  const item = list[integer(random, list.length)];
  if (item === undefined) throw new Error('cannot pick from an empty list');
  return item;
}

/** Draws an index of a list by Zipf's law: the nth is as likely as `n ** -exponent`; with 0, all are alike. */
export function zipf(count: number, exponent: number): (random: Random) => number {
  let sum = 0;
  const sums = Array.from({ length: count }, (_, index) => {
    sum += (index + 1) ** -exponent;
    return sum;
  });
  return (random) => {
    const at = random() * sum;
    return sums.findIndex((upTo) => at < upTo);
  };
}

/** A waiting time with mean 1. */
export function exponential(random: Random): number {
  return -Math.log(1 - random());
}

/** A log-normal number with this median; `sigma` is the standard deviation of its logarithm. */
export function logNormal(random: Random, { median, sigma }: { median: number; sigma: number }): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp(sigma * normal);
}

export function bytes(random: Random, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => integer(random, 256));
}

/** The four words of state that sfc32 starts from (xmur3, a string hash made for this). */
function seedWords(text: string): [number, number, number, number] {
  let hash = 1779033703 ^ text.length;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 3432918353);
    hash = (hash << 13) | (hash >>> 19);
  }
  const word = (): number => {
    hash = Math.imul(hash ^ (hash >>> 16), 2246822507);
    hash = Math.imul(hash ^ (hash >>> 13), 3266489909);
    hash ^= hash >>> 16;
    return hash | 0;
  };
  return [word(), word(), word(), word()];
}

function sfc32([first, second, third, fourth]: [number, number, number, number]): Random {
  let a = first;
  let b = second;
  let c = third;
  let counter = fourth;
  return () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    c |= 0;
    return (sum >>> 0) / 2 ** 32;
  };
}
