/** Bits by which lanes are rotated, and their places after it, in the order in which the permutation moves them. */
const ROTATIONS: readonly number[] = Array.from({ length: 24 }, (_, at) => (((at + 1) * (at + 2)) / 2) % 64);
const PLACES: readonly number[] = placesOfLanes();

/** Round constants: the lower and the upper half of each. */
const CONSTANTS: readonly (readonly [number, number])[] = constantsOfRounds();

const RATE_BYTES = 136;

/**
 * Hashes a text in UTF-8; returns 64 hex digits. It is the original Keccak, as Ethereum uses it: SHA3-256 pads differently, and
 * some builds of Node have no other. Written out because the library with it costs 30 MB, for the checksum of an address.
 */
export function keccak256(text: string): string {
  const input = new TextEncoder().encode(text);
  const padded = new Uint8Array((Math.floor(input.length / RATE_BYTES) + 1) * RATE_BYTES);
  padded.set(input);
  padded[input.length] = 1;
  padded[padded.length - 1] = (padded.at(-1) ?? 0) | 0x80;
  const view = new DataView(padded.buffer);
  const state = new Int32Array(50);
  const columns = new Int32Array(10);
  for (let block = 0; block < padded.length; block += RATE_BYTES) {
    for (let word = 0; word < RATE_BYTES / 4; word++)
      state[word] = at(state, word) ^ view.getInt32(block + 4 * word, true);
    for (const constant of CONSTANTS) permute(state, columns, constant);
  }
  return Buffer.from(state.buffer, 0, 32).toString('hex');
}

/** One round. A lane is a pair of words: `2 * lane` its lower half, the next its upper. `columns` holds ten words. */
function permute(state: Int32Array, columns: Int32Array, constant: readonly [number, number]): void {
  columns.fill(0);
  for (let word = 0; word < 50; word++) columns[word % 10] = at(columns, word % 10) ^ at(state, word);
  for (let column = 0; column < 10; column += 2) {
    const before = (column + 8) % 10;
    const nextLow = at(columns, (column + 2) % 10);
    const nextHigh = at(columns, (column + 3) % 10);
    const mixLow = at(columns, before) ^ ((nextLow << 1) | (nextHigh >>> 31));
    const mixHigh = at(columns, before + 1) ^ ((nextHigh << 1) | (nextLow >>> 31));
    for (let row = column; row < 50; row += 10) {
      state[row] = at(state, row) ^ mixLow;
      state[row + 1] = at(state, row + 1) ^ mixHigh;
    }
  }
  let movedLow = at(state, 2);
  let movedHigh = at(state, 3);
  for (let step = 0; step < 24; step++) {
    const place = 2 * (PLACES[step] ?? 0);
    const bits = ROTATIONS[step] ?? 0;
    const one = bits < 32 ? movedLow : movedHigh;
    const two = bits < 32 ? movedHigh : movedLow;
    const shift = bits % 32;
    movedLow = at(state, place);
    movedHigh = at(state, place + 1);
    state[place] = shift === 0 ? one : (one << shift) | (two >>> (32 - shift));
    state[place + 1] = shift === 0 ? two : (two << shift) | (one >>> (32 - shift));
  }
  for (let row = 0; row < 50; row += 10) {
    for (let word = 0; word < 10; word++) columns[word] = at(state, row + word);
    for (let word = 0; word < 10; word++)
      state[row + word] = at(columns, word) ^ (~at(columns, (word + 2) % 10) & at(columns, (word + 4) % 10));
  }
  state[0] = at(state, 0) ^ constant[0];
  state[1] = at(state, 1) ^ constant[1];
}

function at(words: Int32Array, index: number): number {
  return words[index] ?? 0;
}

function placesOfLanes(): number[] {
  let [x, y] = [1, 0];
  return Array.from({ length: 24 }, () => {
    [x, y] = [y, (2 * x + 3 * y) % 5];
    return x + 5 * y;
  });
}

function constantsOfRounds(): [number, number][] {
  let register = 1;
  return Array.from({ length: 24 }, () => {
    let [low, high] = [0, 0];
    for (let power = 0; power < 7; power++) {
      const bit = 2 ** power - 1;
      if (register & 1 && bit < 32) low |= 1 << bit;
      else if (register & 1) high |= 1 << (bit - 32);
      register = (register << 1) ^ (register & 0x80 ? 0x171 : 0);
    }
    return [low, high];
  });
}
