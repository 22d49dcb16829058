import { expect, test } from 'vitest';
import { EVM_RECEIPT, SOLANA_TRANSACTION } from '../../src/domain/proof/moves.ts';

const MANY = Array.from({ length: 10_000 }, () => ({}));
const HASH = `0x${'7e'.repeat(32)}`;
const LOG = {
  address: `0x${'70'.repeat(20)}`,
  topics: [HASH],
  data: '0x',
  logIndex: '0x1',
  transactionHash: HASH,
  blockHash: HASH,
};

const receipt = (logs: unknown) => ({
  transactionHash: HASH,
  blockHash: HASH,
  blockNumber: '0x1',
  status: '0x1',
  logs,
});
const transaction = (meta: object, accountKeys: unknown = []) => ({
  slot: 1,
  blockTime: 1,
  transaction: { signatures: ['5VERv8NMvzbJ'], message: { accountKeys } },
  meta: { err: null, ...meta },
});

test.each([
  ['logs', EVM_RECEIPT, receipt(MANY), ['logs', 0, 'address']],
  ['logs after a good one', EVM_RECEIPT, receipt([LOG, ...MANY]), ['logs', 1, 'address']],
  ['topics', EVM_RECEIPT, receipt([{ ...LOG, topics: MANY }]), ['logs', 0, 'topics', 0]],
  [
    'balances',
    SOLANA_TRANSACTION,
    transaction({ postTokenBalances: MANY }),
    ['meta', 'postTokenBalances', 0, 'accountIndex'],
  ],
  ['accounts', SOLANA_TRANSACTION, transaction({}, MANY), ['transaction', 'message', 'accountKeys', 0]],
])('of very many %s that cannot be read the first alone is reported', (_, schema, answer, path) => {
  const issues = schema.safeParse(answer).error?.issues ?? [];
  expect([...new Set(issues.map((issue) => issue.path.join('.')))][0]).toBe(path.join('.'));
  expect(issues.length).toBeLessThan(10);
});
