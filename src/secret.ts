import { inspect } from 'node:util';

const REDACTED = '[secret]';

/**
 * A value that cannot print itself: logs, errors, JSON and inspection show `[secret]`.
 * Only `reveal()` gives the value, at the one place that needs it.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [Symbol.toPrimitive](): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}
