import type { Dispatcher } from 'undici';
import { printableAnswer } from '../printable.ts';

/** How much of an answer is read and kept. */
const MAX_ANSWER_BYTES = 1_024;

/** The start of an answer's body; `ended` says whether it ended, or reached the cap, rather than broke off. */
export type AnswerStart = { text: string; ended: boolean };

/**
 * Reads the first 1 KiB of a body. A body that goes on beyond that is cut there, with its connection, and counts as
 * ended: it must not cost a success that a status has already promised. Never throws: a body that breaks off, or is
 * aborted, gives what had arrived.
 */
export async function readAnswerStart(body: Dispatcher.ResponseData['body']): Promise<AnswerStart> {
  const chunks: Buffer[] = [];
  let length = 0;
  let ended = true;
  try {
    // Leaving the loop destroys the stream and with it the connection.
    for await (const chunk of body) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= MAX_ANSWER_BYTES) break;
    }
  } catch {
    ended = false;
  }
  return { text: printableAnswer(Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES)), ended };
}
