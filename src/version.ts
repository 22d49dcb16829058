import { readFileSync } from 'node:fs';
import { z } from 'zod';

// Read, not imported: package.json lies outside of what the package's JavaScript is made from.
const PACKAGE = new URL('../package.json', import.meta.url);

/** The version of this program. */
export const VERSION: string = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(PACKAGE, 'utf8'))).version;
