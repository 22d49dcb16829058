import { statSync } from 'node:fs';

/** A file that cannot be read whole: it is too large, or not a regular file. */
type Endless = { isFile: boolean; found: string; expected: string };

/**
 * Explains why a path cannot be read whole; null where it can. A pipe or device could block its reader, and the exit, for
 * ever.
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

/** Size of a file in bytes; 0 where it is unknown. */
export function sizeOf(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return 0;
  }
}
