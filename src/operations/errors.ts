/** What was requested is not there: the message says what was found and what is known. */
export class UnknownError extends Error {
  override readonly name = 'UnknownError';
}

/** What was requested cannot be done as things stand: the message says why, and what would help. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}
