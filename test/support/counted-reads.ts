/** A value whose members are read as of the original, and the number of reads in it. */
export type CountedReads<T> = { value: T; reads: () => number };

/** Counts reads of members at any depth: unlike a time, the count shows proportional growth on any machine. */
export function countedReads<T extends object>(original: T): CountedReads<T> {
  let reads = 0;
  const proxies = new WeakMap<object, object>();
  const wrap = <V extends object>(value: V): V => {
    const proxy = new Proxy(value, {
      get: (target, key) => {
        reads += 1;
        return inner(Reflect.get(target, key));
      },
      getOwnPropertyDescriptor: (target, key) => {
        reads += 1;
        return Reflect.getOwnPropertyDescriptor(target, key);
      },
      ownKeys: (target) => {
        const keys = Reflect.ownKeys(target);
        reads += keys.length;
        return keys;
      },
    });
    proxies.set(value, proxy);
    return proxy;
  };
  // One proxy for each object: equal objects stay equal.
  const inner = (value: unknown): unknown =>
    typeof value === 'object' && value !== null ? (proxies.get(value) ?? wrap(value)) : value;
  return { value: wrap(original), reads: () => reads };
}
