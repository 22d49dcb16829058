import { deflateRawSync, inflateRawSync } from 'node:zlib';

/**
 * Texts of JSON that are stored packed: `~<length>~<base64>`, the raw deflate of the text with the dictionary below. `length`,
 * in bytes, lets readers limit their work before they unpack. A change of the dictionary needs another SCHEMA_VERSION.
 */
const PACKED = /^~(\d{1,7})~/;

/** Shorter texts hardly shrink. Longer ones are stored as they are: packing one would hold up the event loop. */
const LEAST_BYTES = 128;
const MOST_BYTES = 65_536;

/** Names and values of usual events; the most frequent come last, where references to them are short. */
const DICTIONARY = Buffer.from(
  [
    '"proof":{"payment":"fulfilment","refund":"verified","endpoints":[{"host":"blockNumber":"finalized":true,"logIndex":',
    '"expiresAt":"signature":{"recipient","funder","quoteIds":["quote:"subStatuses":[{"state":"submitted","published","failed"',
    '"refunded":{"chainId":"refundTx":{"type":"quote.submitted","type":"gasless.","type":"vault.published","kind":"deposit-address',
    '"type":"intent.overdue","type":"intent.refunded","type":"intent.verified","skipped":true,"regression":true,"afterRestore":true',
    '"promised":{"quote":"quote:","source":{"chainId":"1","token":"0x","amount":"","funder":"0x"},"destination":{"chainId":"10",',
    '"minimum":"","recipient":"0x"},"fees":[{"kind":"network","token":"0x"}],"estimateSeconds":,"refundRecipient":"0x"},',
    '"expectedBy":{"status":"settled","at":"2026-","probability":0.9,"medianAt":"2026-',
    '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48 0xdAC17F958D2ee523a2206206994597C13D831ec7 "chainId":1,"chainId":10,"chainId":137,',
    '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85 0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359 "chainId":42220,"chainId":1399811149,',
    'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v 0xcebA9300f2b948710d2653dD7B07f33A8B32118C "type":"SWAP"},',
    '{"id":"evt_0","type":"intent.pending","timestamp":"2026-11-26T18:00:00.000Z","data":{"subject":{"kind":"intent",',
    '"id":"intent:0x"},"sequence":1,"epoch":1,"status":"pending","previousStatus":null,"changes":["destinationTx","sourceTx",',
    '"txHash","id","type","status","updatedAt","steps","steps.0.status","steps.0.transactions.created","steps.0.transactions.fulfilled"],',
    '"record":{"destinationTx":{"amount":"1000000","chainId":42161,"token":"0xaf88d065e77c8cC2239327C5EDb3A432268e5831","txHash":"0x"},',
    '"id":"intent:0x","intentHashes":["0x"],"sourceTx":{"amount":"1000000","chainId":8453,',
    '"token":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","txHash":"0x"},"status":"filled","steps":[{"from":{"amount":"","chainId":8453,',
    '"token":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"},"intentHash":"0x","status":"FULFILLED","to":{"amount":"","chainId":42161,',
    '"token":"0xaf88d065e77c8cC2239327C5EDb3A432268e5831"},"transactions":{"created":{"chainId":8453,"txHash":"0x"},',
    '"fulfilled":{"chainId":42161,"txHash":"0x"}},"type":"BRIDGE"}],"txHash":"0x","type":"intent","updatedAt":17',
    '},"elapsedSeconds":35,"upstreamUpdatedAt":17,"detectionDelaySeconds":1.1,',
    '"before":{"destinationTx":null,"sourceTx":null,"txHash":null,"steps.0.status":"PENDING","updatedAt":},"fundedAt":17}}',
  ].join(''),
);

/**
 * A window of 4 KiB and little working memory: allocating more would take longer than packing a usual event. So does the
 * default of 16 KiB for each piece of the result, which also stays until the next collection.
 */
const OPTIONS = {
  dictionary: DICTIONARY,
  windowBits: 12,
  memLevel: 5,
  chunkSize: 1_024,
};

const UNPACKING = { dictionary: DICTIONARY, windowBits: 12 };
const MOST_UNPACKED_AT_ONCE = 16_384;

/** Packs a text, where that makes it shorter. */
export function pack(text: string): string {
  const length = Buffer.byteLength(text);
  if (length < LEAST_BYTES || length > MOST_BYTES) return text;
  const packed = `~${length}~${deflateRawSync(text, OPTIONS).toString('base64')}`;
  return packed.length < length ? packed : text;
}

/** Returns the bytes of a text, as UTF-8, when it is unpacked. */
export function unpackedBytes(stored: string): number {
  const [, length] = PACKED.exec(stored) ?? [];
  return length === undefined ? Buffer.byteLength(stored) : Number(length);
}

/**
 * Restores a packed text. Any other text is returned as it is, and so is a damaged one, which is no JSON. What lacks a part may
 * unpack to other content: its length shows it.
 */
export function unpack(stored: string): string {
  const [head, length] = PACKED.exec(stored) ?? [];
  if (head === undefined) return stored;
  try {
    const packed = Buffer.from(stored.slice(head.length), 'base64');
    const maxOutputLength = Math.max(1, Number(length));
    // One byte more: a full piece would be followed by another.
    const chunkSize = Math.min(MOST_UNPACKED_AT_ONCE, Math.max(64, maxOutputLength + 1));
    const text = inflateRawSync(packed, { ...UNPACKING, maxOutputLength, chunkSize });
    return text.length === Number(length) ? text.toString() : stored;
  } catch {
    return stored;
  }
}

/**
 * Redis stores a hash compactly while each value has at most 64 bytes, by default (`hash-max-listpack-value`), and a hundred
 * bytes more for each field otherwise.
 */
const PIECE = 64;
const MOST_PIECES = 24;

/** Splits the packed form of a text into the values of several fields of a hash: `name`, `name1`, `name2`, … */
export function packFields(name: string, text: string): { [field: string]: string } {
  const packed = pack(text);
  if (!packed.startsWith('~') || packed.length > PIECE * MOST_PIECES) return { [name]: packed };
  const count = Math.ceil(packed.length / PIECE);
  return Object.fromEntries(
    Array.from({ length: count }, (_, at) => [
      at === 0 ? name : `${name}${at}`,
      packed.slice(at * PIECE, (at + 1) * PIECE),
    ]),
  );
}

/** Restores a text that `packFields` has split. */
export function unpackFields(name: string, hash: { readonly [field: string]: string }): string | undefined {
  let packed = hash[name];
  if (packed === undefined || !packed.startsWith('~')) return packed;
  for (let at = 1; at < MOST_PIECES; at += 1) packed += hash[`${name}${at}`] ?? '';
  return unpack(packed);
}
