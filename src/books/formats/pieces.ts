import { setImmediate as yieldToOthers } from 'node:timers/promises';

const PIECE_CHARACTERS = 65_536;

/** A long text in pieces of some size, from its rows. Others are served between two of them. */
export async function* inPieces(rows: Iterable<string>): AsyncGenerator<string> {
  let piece = '';
  for (const row of rows) {
    piece += row;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = '';
    await yieldToOthers();
  }
  if (piece !== '') yield piece;
}
