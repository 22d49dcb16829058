import type { JsonValue } from '../../domain/json.ts';
import { printableLine } from '../printable.ts';

/** A fact with its name, and where it can be looked at. */
export type Row = { label: string; value: string; url: string | null };

const MAX_VALUE_LENGTH = 500;

/** One row, or none when there is nothing to say. */
export function rowIf(label: string, value: string): Row[] {
  const line = printableLine(value, MAX_VALUE_LENGTH);
  return line === '' ? [] : [{ label: printableLine(label, 60) || 'unnamed', value: line, url: null }];
}

/** Any JSON as a phrase: `chainId 8453, state submitted, quoteIds quote:…`; what lies deeper than 4 levels is left out. */
export function describeValue(value: JsonValue | undefined, depth = 0): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'object') return String(value);
  if (depth === 4) return '…';
  if (Array.isArray(value)) {
    const separator = value.some((item) => typeof item === 'object') ? '; ' : ', ';
    return value.map((item) => describeValue(item, depth + 1)).join(separator);
  }
  return Object.entries(value)
    .map(([key, member]) => `${key} ${describeValue(member, depth + 1)}`.trim())
    .join(', ');
}
