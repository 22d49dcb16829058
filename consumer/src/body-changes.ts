const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** True when a signature fits these bytes instead of the received ones. */
export type Fits = (body: Buffer) => boolean;

/** The usual change by a proxy or framework that explains an invalid signature; else null. The body is refused all the same. */
export function howChanged(
  bytes: Buffer,
  { encoding, fits }: { encoding: string | null; fits: Fits },
): string | null {
  if (encoding !== null) return `it came with content-encoding ${JSON.stringify(encoding.slice(0, 40))}`;
  if (bytes.length === 0) return 'it is empty';
  const change = CHANGES.find(({ undo }) => {
    const before = undo(bytes);
    return before !== null && !before.equals(bytes) && fits(before);
  });
  return change?.description ?? null;
}

const CHANGES: readonly { description: string; undo: (bytes: Buffer) => Buffer | null }[] = [
  { description: 'something parsed the JSON and wrote it anew', undo: compact },
  {
    description: 'a line break or spaces were added at its end',
    undo: (bytes) => Buffer.from(bytes.toString('latin1').trimEnd(), 'latin1'),
  },
  {
    description: 'a byte order mark was added',
    undo: (bytes) => (bytes.subarray(0, 3).equals(BOM) ? bytes.subarray(3) : null),
  },
  {
    description: 'its UTF-8 was mistaken for Latin-1',
    undo: (bytes) => Buffer.from(bytes.toString('utf8'), 'latin1'),
  },
];

/** The JSON in its sender's form. Null for other text; a changed order of members is not restored. */
function compact(bytes: Buffer): Buffer | null {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(bytes.toString('utf8'))));
  } catch {
    return null;
  }
}
