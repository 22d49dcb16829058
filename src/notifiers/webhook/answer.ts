import type { Dispatcher } from 'undici';
import { MAX_ANSWER_BYTES, MAX_READ } from '../kept.ts';

/**
 * The start of an answer's body, as it came; `ended` says whether it ended, or reached the cap, rather than broke off,
 * `cut` whether more may have followed.
 */
export type AnswerStart = { text: string; ended: boolean; cut: boolean };

/**
 * Reads a body until 1 KiB has come. A body that goes on beyond that is cut there, with its connection, and counts as
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
  const bytes = Buffer.concat(chunks).subarray(0, MAX_READ);
  const text = new TextDecoder('utf-8').decode(bytes, { stream: true }).replaceAll('\ufffd', '?');
  return { text, ended, cut: !ended || length >= MAX_ANSWER_BYTES };
}
