import { expect, test } from 'vitest';
import { booksSchema, buildBooks } from '../../src/config/sections/books.ts';

const hasTls = (url: string, more: object = {}): boolean | undefined =>
  buildBooks(booksSchema.parse({ url, ...more }))?.hasTls;

test('reaches a Postgres elsewhere with TLS unless the config disables it, and one on this machine without', () => {
  expect(hasTls('postgres://u@db.example.com/books')).toBe(true);
  expect(hasTls('postgres://u@10.0.0.7/books')).toBe(true);
  expect(hasTls('postgres://u@db.example.com/books', { allowInsecure: true })).toBe(false);
  expect(hasTls('postgres://u@127.0.0.1:5432/books')).toBe(false);
  expect(hasTls('postgres://u@localhost/books')).toBe(false);
  expect(hasTls('postgres://u@localhost/books?sslmode=require')).toBe(true);
  expect(hasTls('postgres://u@localhost/books?sslmode=disable')).toBe(false);
});
