import { RefusedError } from './errors.ts';
import { entryOf, type LogPlace } from './events.ts';
import type { OperationParts } from './parts.ts';

/** Moves a consumer whose place is stored here: what stands up to there, it has taken. Never back. */
export async function acknowledge(name: string, place: LogPlace, parts: OperationParts): Promise<void> {
  await entryOf(place, parts);
  const done = await parts.stores.consumers.acknowledge(name, place);
  if (done === 'full') {
    throw new RefusedError(
      'found as many consumers as can be stored, expected fewer: remove one (DELETE /consumers/{name})',
    );
  }
}
