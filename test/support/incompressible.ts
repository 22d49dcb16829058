import { createHash } from 'node:crypto';

/** Hex digits that no compression shortens below half, the same in each run. */
export function incompressible(digits: number): string {
  const blocks = Array.from({ length: Math.ceil(digits / 64) }, (_, index) =>
    createHash('sha256').update(String(index)).digest('hex'),
  );
  return blocks.join('').slice(0, digits);
}
