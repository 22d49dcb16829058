import { setFlagsFromString } from 'node:v8';

/**
 * Keeps the heap close to what lives in it. V8 lets garbage pile up to several times that on a machine with much memory: a
 * daemon that needs 70 MB held 280. What is young is collected in no more space than starting has taken, and what is old
 * once it has grown by so many percent. Both are flags of V8 that count from when they are set.
 */
export function keepHeapSmall(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
  setFlagsFromString('--semi-space-growth-factor=1');
}

const GROWING_PERCENT = 40;
