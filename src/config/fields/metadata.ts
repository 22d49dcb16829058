import { LIMITS } from '../../domain/limits.ts';

/** What is expected of metadata that is too large, in words. */
export const METADATA_ROOM = `at most ${LIMITS.metadata.bytes} bytes of metadata, as JSON in UTF-8`;

/** True when metadata is within the limit of one subscription or tracked subject. */
export function hasMetadataRoom(metadata: Record<string, string>): boolean {
  return Buffer.byteLength(JSON.stringify(metadata), 'utf8') <= LIMITS.metadata.bytes;
}
