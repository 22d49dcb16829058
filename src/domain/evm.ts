import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * The library for events of contracts and signed data, loaded at its first use: it costs 25 MB and 0.2 s of every start, and
 * only payments checked on chains and verified quotes need it.
 */
export function viem(): typeof import('viem/utils') {
  return require('viem/utils');
}
