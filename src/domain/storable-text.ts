/** A text as databases keep it: the character 0, and halves of surrogate pairs, become U+FFFD. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}
