import { readFileSync } from 'node:fs';

// Read, not imported: the package's JavaScript is built without it. Every command loads this file, and --version no other.
const PACKAGE = new URL(import.meta.resolve('#package'));
const { version }: { version: string } = JSON.parse(readFileSync(PACKAGE, 'utf8'));

export const VERSION = version;
