/** Event types that stay with the operator: they reach only receivers whose patterns name them. */
const OPERATOR_PREFIXES = ['upstream.', 'receiver.'];

/** Whether an event type is one for the operator of the daemon. */
export function isOperatorType(type: string): boolean {
  return OPERATOR_PREFIXES.some((prefix) => type.startsWith(prefix));
}

/**
 * Whether a receiver's `events` let a type through: some pattern matches and no pattern with a leading `!` does.
 * `*` stands for any run of characters. Operator events need a pattern that begins with their own prefix.
 */
export function wantsType(patterns: readonly string[], type: string): boolean {
  const positive = patterns.filter((pattern) => !pattern.startsWith('!'));
  const negative = patterns.filter((pattern) => pattern.startsWith('!')).map((pattern) => pattern.slice(1));
  if (negative.some((pattern) => matches(pattern, type))) return false;
  const candidates = isOperatorType(type)
    ? positive.filter((pattern) => OPERATOR_PREFIXES.some((prefix) => pattern.startsWith(prefix)))
    : positive;
  return candidates.some((pattern) => matches(pattern, type));
}

function matches(pattern: string, type: string): boolean {
  const expression = pattern.split('*').map((part) => part.replace(/[.\\+?^${}()|[\]]/g, '\\$&'));
  return new RegExp(`^${expression.join('.*')}$`).test(type);
}
