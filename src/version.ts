import { readFileSync } from 'node:fs';
import { z } from 'zod';

// Read, not imported: the package's JavaScript is built without it.
const PACKAGE = new URL(import.meta.resolve('#package'));

export const VERSION: string = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(PACKAGE, 'utf8'))).version;
