import type { RenderedEvent } from '../../domain/event.ts';
import { canonicalJson } from '../../domain/json.ts';

/** The bytes of an event as they are signed and sent: canonical JSON of `{ id, type, timestamp, data }`. */
export function renderBody({ id, type, timestamp, data }: RenderedEvent): Buffer {
  return Buffer.from(canonicalJson({ id, type, timestamp, data }), 'utf8');
}
