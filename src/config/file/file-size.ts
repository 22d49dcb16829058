import { statSync } from 'node:fs';

/** What cannot be read whole: a file that is too large, or no file at all. */
export type Endless = { isFile: boolean; found: string; expected: string };

/**
 * Why a path cannot be read whole, in words; null where it can, or where reading itself says more. A pipe or a device could
 * keep its reader for ever, and with it the end of the process.
 */
export function whyEndless(path: string, mostBytes: number): Endless | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isDirectory()) return null;
  if (!stat.isFile()) return { isFile: false, found: 'a pipe or a device', expected: 'a file' };
  if (stat.size <= mostBytes) return null;
  return {
    isFile: true,
    found: `a file of ${stat.size} bytes`,
    expected: `one of at most ${mostBytes} bytes`,
  };
}

/** The number of bytes a file that has; 0 for what cannot be asked. */
export function sizeOf(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return 0;
  }
}
