import type { FileHandle } from 'node:fs/promises';

/**
 * A range to remove from a file. `zeros`: the bytes of the gap at its end; the bytes before them are of a command, or of a
 * transaction, whose end is lost.
 */
export type Cut = { from: number; to: number; zeros: number };

const [STAR, DOLLAR, HASH, CR, LF, ZERO, NINE] = [0x2a, 0x24, 0x23, 0x0d, 0x0a, 0x30, 0x39];

/** Redis reads no more digits of a count or a length, and writes no longer note. */
const MOST_DIGITS = 10;
const MOST_NOTE_BYTES = 1_024;

const LONGEST_NAME = 5;

/**
 * Follows the commands of an append-only file, chunk by chunk; skips values by their length.
 *
 *   State    Next bytes                           Left when
 *   command  a command, a note or a gap           `*` ─► count; `#` ─► note; a NUL byte ─► gap
 *   count    number of values of the command      the line ends ─► length
 *   length   `$` and the length of a value        the line ends ─► value
 *   value    the value and the end of its line    it ends ─► length, or after the last one ─► command
 *   note     a line with the time of the writes   it ends ─► command
 *   gap      NUL bytes                            another byte ─► command
 *   broken   what Redis did not write             `resume` ─► command; any other state with such a byte ─► broken
 */
class CommandScan {
  readonly cuts: Cut[] = [];
  state: 'command' | 'count' | 'length' | 'value' | 'note' | 'gap' | 'broken' = 'command';
  /** The begin of the command, the note or the gap under way. */
  commandAt = 0;
  /** The begin of the transaction under way. */
  #transactionAt: number | null = null;
  #values = 0;
  #valuesLeft = 0;
  #number = 0;
  /** Of the number under way; -1 before the `$` of a length. */
  #digits = 0;
  /** Bytes of the value and of the end of its line. */
  #bytesLeft = 0;
  #name = '';
  #isLineEnding = false;
  #hasNumber = false;

  /** Follows bytes that begin at `at` of the file. Returns the number of those before the state `broken`. */
  feed(bytes: Buffer, at: number): number {
    let index = 0;
    while (index < bytes.length && this.state !== 'broken') {
      const byte = bytes[index] ?? 0;
      switch (this.state) {
        case 'command':
          this.#begin(byte, at + index);
          index += 1;
          break;
        case 'count':
          index = this.#readNumber(bytes, index);
          if (this.#hasNumber) this.#beginValues();
          break;
        case 'length':
          if (this.#digits === -1) {
            if (byte !== DOLLAR) this.state = 'broken';
            this.#digits = 0;
            index += 1;
          } else {
            index = this.#readNumber(bytes, index);
            if (this.#hasNumber) this.#beginValue();
          }
          break;
        case 'value':
          index += this.#readValue(bytes, index);
          break;
        case 'note':
          if (byte === LF) this.state = 'command';
          else if (at + index - this.commandAt > MOST_NOTE_BYTES) this.state = 'broken';
          index += 1;
          break;
        case 'gap':
          if (byte === 0) index += 1;
          else this.resume({ from: this.commandAt, to: at + index });
          break;
      }
    }
    return this.state === 'broken' ? Math.max(0, index - 1) : index;
  }

  /** Continues behind a gap. The command and the transaction before it have lost their ends. */
  resume(gap: { from: number; to: number }): void {
    const from = this.#transactionAt ?? this.commandAt;
    this.cuts.push({ from, to: gap.to, zeros: gap.to - gap.from });
    this.#transactionAt = null;
    this.state = 'command';
  }

  #begin(byte: number, at: number): void {
    this.commandAt = at;
    this.#beginNumber(0);
    this.state = byte === STAR ? 'count' : byte === HASH ? 'note' : byte === 0 ? 'gap' : 'broken';
  }

  /** Reads a number and the end of its line, as far as the bytes have it. Returns the index behind. */
  #readNumber(bytes: Buffer, begin: number): number {
    let [index, number, digits] = [begin, this.#number, this.#digits];
    let byte = bytes[index] ?? 0;
    while (!this.#isLineEnding && byte >= ZERO && byte <= NINE && digits <= MOST_DIGITS) {
      number = number * 10 + byte - ZERO;
      digits += 1;
      index += 1;
      byte = bytes[index] ?? 0;
    }
    [this.#number, this.#digits] = [number, digits];
    if (index === bytes.length) return index;
    if (byte === CR && digits > 0 && digits <= MOST_DIGITS && !this.#isLineEnding) {
      this.#isLineEnding = true;
      index += 1;
      if (index === bytes.length) return index;
      byte = bytes[index] ?? 0;
    }
    if (byte === LF && this.#isLineEnding) this.#hasNumber = true;
    else this.state = 'broken';
    return index + 1;
  }

  #beginValues(): void {
    this.#values = this.#number;
    this.#valuesLeft = this.#number;
    this.#name = '';
    this.#beginLength(this.#number === 0 ? 'broken' : 'length');
  }

  #beginLength(state: 'length' | 'broken'): void {
    this.#beginNumber(-1);
    this.state = state;
  }

  #beginNumber(digits: 0 | -1): void {
    this.#number = 0;
    this.#digits = digits;
    this.#isLineEnding = false;
    this.#hasNumber = false;
  }

  #beginValue(): void {
    this.#bytesLeft = this.#number + 2;
    this.state = 'value';
  }

  /** Returns the number of bytes that it has read. */
  #readValue(bytes: Buffer, index: number): number {
    if (this.#bytesLeft > 2) {
      const read = Math.min(this.#bytesLeft - 2, bytes.length - index);
      // Only MULTI and EXEC matter, which have no other value.
      if (this.#values === 1 && this.#number <= LONGEST_NAME)
        this.#name += bytes.toString('latin1', index, index + read);
      this.#bytesLeft -= read;
      return read;
    }
    if (bytes[index] !== (this.#bytesLeft === 2 ? CR : LF)) {
      this.state = 'broken';
      return 1;
    }
    this.#bytesLeft -= 1;
    if (this.#bytesLeft > 0) return 1;
    this.#valuesLeft -= 1;
    if (this.#valuesLeft > 0) this.#beginLength('length');
    else this.#end();
    return 1;
  }

  #end(): void {
    const name = this.#name.toUpperCase();
    if (name === 'MULTI') this.#transactionAt = this.commandAt;
    else if (name === 'EXEC') this.#transactionAt = null;
    this.state = 'command';
  }
}

const CHUNK_BYTES = 1_048_576;

/** The begin of a command or of a note, as Redis writes them. */
const HEAD = /^(?:\*\d{1,7}\r\n\$\d{1,9}\r\n|#TS:\d{1,11}\r\n)/;
const HEAD_BYTES = 32;

/** A cut command swallows what comes behind it, which is then read again: not more often than this. */
const MOST_RESTARTS = 16;

/** Reads a file of `size` bytes through one buffer. */
class ChunkReader {
  readonly size: number;
  readonly #file: FileHandle;
  readonly #buffer = Buffer.alloc(CHUNK_BYTES);
  #at = 0;
  #length = 0;

  constructor(file: FileHandle, size: number) {
    this.#file = file;
    this.size = size;
  }

  /** Returns bytes from `at` on, which are valid until the next call; at least one, where the file has any there. */
  async from(at: number): Promise<Buffer> {
    if (at < this.#at || at >= this.#at + this.#length) {
      const most = Math.min(CHUNK_BYTES, this.size - at);
      const { bytesRead } = await this.#file.read(this.#buffer, 0, most, at);
      if (bytesRead === 0) throw new Error(`found ${at} bytes in the file, expected ${this.size}`);
      [this.#at, this.#length] = [at, bytesRead];
    }
    return this.#buffer.subarray(at - this.#at, this.#length);
  }

  async isHead(at: number): Promise<boolean> {
    const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, at);
    return HEAD.test(buffer.toString('latin1', 0, bytesRead));
  }
}

/**
 * Returns the cuts after which an append-only file has only complete commands, but perhaps at its end. An empty list: it
 * already is such a file; null: it has other damage. A value that has NUL bytes is no gap. Reads the file once, and no range
 * of it more than a fixed number of times.
 */
export async function findCuts(file: FileHandle, size: number): Promise<readonly Cut[] | null> {
  const reader = new ChunkReader(file, size);
  const scan = new CommandScan();
  let at = 0;
  for (let restarts = 0; restarts <= MOST_RESTARTS; restarts += 1) {
    while (at < size && scan.state !== 'broken') at += scan.feed(await reader.from(at), at);
    if (scan.state === 'gap') return null;
    if (scan.state === 'command') return scan.cuts;
    // A command that was cut before a gap swallows the gap as a value, and maybe all that follows.
    const gap = await findGap(reader, { from: scan.commandAt, to: at });
    if (gap === null) return scan.state === 'broken' ? null : scan.cuts;
    scan.resume(gap);
    at = gap.to;
  }
  return null;
}

/** Returns the first run of NUL bytes that begins in a range and has a command behind it; null for none. */
async function findGap(
  reader: ChunkReader,
  range: { from: number; to: number },
): Promise<{ from: number; to: number } | null> {
  let at = range.from;
  while (at <= range.to && at < reader.size) {
    const bytes = await reader.from(at);
    const found = bytes.indexOf(0);
    at += found === -1 ? bytes.length : found;
    if (found === -1 || at > range.to) continue;
    const from = at;
    at = await endOfZeros(reader, from);
    if (at < reader.size && (await reader.isHead(at))) return { from, to: at };
  }
  return null;
}

async function endOfZeros(reader: ChunkReader, from: number): Promise<number> {
  let at = from;
  while (at < reader.size) {
    const bytes = await reader.from(at);
    const found = bytes.findIndex((byte) => byte !== 0);
    if (found !== -1) return at + found;
    at += bytes.length;
  }
  return at;
}
