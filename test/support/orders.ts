/** Every order of some values: n! of them. */
export function* ordersOf<T>(values: readonly T[]): Generator<T[]> {
  if (values.length === 0) yield [];
  for (const [index, value] of values.entries()) {
    for (const rest of ordersOf(values.toSpliced(index, 1))) yield [value, ...rest];
  }
}
