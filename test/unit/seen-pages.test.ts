import { expect, test } from 'vitest';
import { intentId, type SubjectId, walletId } from '../../src/domain/subjects/subject.ts';
import { INGESTED_EVERY_MS, type SeenPage, SeenPages } from '../../src/queues/polls/seen-pages.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const RECORDS = 50;

function pageAt(
  atMs: number,
  { status = 'filled', nextCursor = null }: { status?: string; nextCursor?: string | null } = {},
): SeenPage {
  const records = Array.from({ length: RECORDS }, (_, index) => {
    const record = {
      subject: intentId(hashOf(index)),
      status,
      updatedAt: 1,
      isOpen: false,
      readAtMs: atMs,
    };
    return [String(index), record] as const;
  });
  return {
    body: 'body',
    content: 'content',
    isSettled: true,
    nextCursor,
    records: new Map(records),
    atMs,
  };
}

const WALLETS: readonly SubjectId[] = Array.from({ length: 20 }, (_, index) =>
  walletId(`0x${String(index).padStart(40, '0')}`),
);

function remembered(pages: SeenPages): number {
  return WALLETS.filter((wallet) => pages.get(wallet, 'head') !== null).length;
}

test('pages beyond the bytes are not remembered, whether new or of a wallet that is', () => {
  const pages = new SeenPages({ bytes: 100_000 });
  for (const wallet of WALLETS) pages.set(wallet, 'head', pageAt(0));
  const most = remembered(pages);
  expect(most).toBeGreaterThan(2);
  expect(most).toBeLessThan(10);
  for (let round = 1; round < 5; round += 1) {
    for (const wallet of WALLETS) pages.set(wallet, 'head', pageAt(round));
  }
  expect(remembered(pages)).toBe(most);
});

test('a page that is too old gives its space to another one', () => {
  const pages = new SeenPages({ bytes: 100_000 });
  for (const wallet of WALLETS) pages.set(wallet, 'head', pageAt(0));
  const last = WALLETS.at(-1) ?? walletId('');
  expect(pages.get(last, 'head')).toBeNull();
  pages.set(last, 'head', pageAt(2 * INGESTED_EVERY_MS));
  expect(pages.get(last, 'head')).not.toBeNull();
  expect(pages.get(WALLETS[0] ?? last, 'head')).toBeNull();
});

test('the space of a removed page is free again', () => {
  const pages = new SeenPages({ bytes: 100_000 });
  for (let times = 0; times < 50; times += 1) {
    for (const wallet of WALLETS.slice(0, 3)) pages.set(wallet, 'head', pageAt(times));
    for (const wallet of WALLETS.slice(0, 3)) pages.remove(wallet, 'head');
  }
  expect(remembered(pages)).toBe(0);
  pages.set(WALLETS[0] ?? walletId(''), 'head', pageAt(0));
  expect(remembered(pages)).toBe(1);
});

test.each([
  ['cursor', { nextCursor: 'c'.repeat(1_000_000) }],
  ['status', { status: 's'.repeat(20_000) }],
])('a long %s of the upstream counts among the bytes', (_, texts) => {
  const pages = new SeenPages({ bytes: 5_000_000 });
  for (const wallet of WALLETS) pages.set(wallet, 'head', pageAt(0, texts));
  expect(remembered(pages)).toBeGreaterThan(0);
  expect(remembered(pages)).toBeLessThan(4);
});
