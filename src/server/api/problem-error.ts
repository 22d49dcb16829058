/** A request that cannot be done, as a problem (RFC 9457): the message says what was found and what was expected. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, detail: string, headers: Readonly<Record<string, string>> = {}) {
    super(detail);
    this.status = status;
    this.headers = headers;
  }
}
