import { accepting, instead } from '../breakage.ts';
import { bodyOf, call, refusedByGateway } from '../call.ts';
import { holds, read, same, text } from '../expectation.ts';
import {
  atVaults,
  fetchJob,
  fetchVault,
  newVault,
  requestVault,
  submitPermit,
  VAULTS,
  vaultTransfer,
} from '../funding.ts';
import { given, inSection, type Rule, type Target } from '../rule.ts';

const OLDER = /^\/deposit-gateway\/v1\/gasless\/transferWithAuthorization/;
const BY_ID = /^\/deposit-gateway\/v2\/depositAddresses\//;
const needs = ['vaultRequest', 'funder'] as const;

/** A body that funds a new vault by the older path. */
async function transfer(target: Target): Promise<Record<string, unknown>> {
  const { place, amount } = await newVault(target);
  return vaultTransfer(target, { vault: place, value: amount });
}

function postOlder(target: Target, body: unknown) {
  return atVaults(target, { path: VAULTS.olderErc3009, body });
}

function field(name: string, title: string, wrong: readonly unknown[]): Omit<Rule, 'section'> {
  return {
    id: `transferWithAuthorization: ${name}`,
    title,
    needs,
    check: async (target) => {
      const body = await transfer(target);
      for (const value of wrong) refusedByGateway(await postOlder(target, { ...body, [name]: value }), 400);
      bodyOf(await postOlder(target, body), 202);
    },
    breakage: accepting({ path: OLDER, status: 400 }, { data: { status: 'PENDING' } }),
  };
}

const TRANSFER_RULES = inSection('Deposit vaults: transferWithAuthorization', [
  field('chainId', 'is an integer of 1 or more', [0, -1, 1.5, '8453']),
  field('from', 'is 0x and 40 hex digits', ['0x12', 7, 'nobody']),
  field('to', 'is 0x and 40 hex digits', ['0x12', 7, 'nobody']),
  {
    id: 'transferWithAuthorization: value',
    title: 'is at least the quoted amount, in raw units as a string',
    needs,
    check: async (target) => {
      const { place, amount } = await newVault(target);
      const less = await vaultTransfer(target, { vault: place, value: amount - 1n });
      const reply = await postOlder(target, less);
      holds(reply.status >= 400 && reply.status < 500, `a lower value: found ${reply.status}, expected 4xx`);
      const right = await vaultTransfer(target, { vault: place, value: amount });
      refusedByGateway(await postOlder(target, { ...right, value: Number(amount) }), 400);
      bodyOf(await postOlder(target, right), 202);
    },
    breakage: accepting({ path: OLDER, status: 422 }, { data: { status: 'PENDING' } }),
  },
  field('validAfter', 'is Unix seconds as a string', ['soon', '1.5', 0]),
  field('validBefore', 'is Unix seconds as a string', ['later', '1.5', 9_999_999_999]),
  field('nonce', 'is 0x and 64 hex digits', ['0x12', 1, `0x${'1'.repeat(63)}`]),
  field('signature', 'is 0x and 130 hex digits', ['0x12', `0x${'1'.repeat(128)}`, `0x${'g'.repeat(130)}`]),
  {
    id: 'transferWithAuthorization: response',
    title: 'is 202 with a gasless job record',
    needs,
    check: async (target) => {
      const body = bodyOf(await postOlder(target, await transfer(target)), 202);
      same(read(body, 'data.status'), 'PENDING', 'status of the job');
      text(body, 'data.id');
    },
    breakage: instead({ path: OLDER, status: 202 }, { status: 200 }),
  },
]);

const LOOKUP_RULES = inSection('Deposit vaults: lookups', [
  {
    id: 'gasless/jobs/{id}',
    title: 'answers with the job of that id',
    stage: 'finished',
    needs: ['gatewayJob'],
    check: async (target) => {
      const id = given(target, 'gatewayJob');
      same(read(bodyOf(await fetchJob(target, id)), 'data.id'), id, 'id');
    },
    breakage: instead({ path: /gasless\/jobs/ }, { body: { data: { id: 'another', status: 'PENDING' } } }),
  },
  {
    id: 'depositAddresses/{vaultAddress} a',
    title: 'takes the address in mixed and in lower case',
    stage: 'finished',
    needs: ['vault'],
    check: async (target) => {
      const { address, chainId } = given(target, 'vault');
      const mixed = bodyOf(await fetchVault(target, { address, chainId }));
      const lower = bodyOf(await fetchVault(target, { address: address.toLowerCase(), chainId }));
      same(lower, mixed, 'vault');
      same(text(mixed, 'data.vaultAddress').toLowerCase(), address.toLowerCase(), 'vaultAddress');
    },
    breakage: {
      answer: (answered, request) =>
        BY_ID.test(request.path) && !/depositAddresses\/0x[0-9a-f]*[A-F]/.test(request.path)
          ? { ...answered, status: 404 }
          : answered,
    },
  },
  {
    id: 'depositAddresses/{vaultAddress} b',
    title: 'refuses what is no 20-byte hex address',
    check: async (target) => {
      for (const address of ['0x123', `0x${'g'.repeat(40)}`]) {
        refusedByGateway(await fetchVault(target, { address, chainId: 1 }), 400);
      }
    },
    breakage: accepting({ path: BY_ID, status: 400 }, { data: {} }),
  },
  {
    id: 'depositAddresses/{vaultAddress} c',
    title: 'takes the chain where the vault is funded, an integer, as a query parameter',
    stage: 'finished',
    needs: ['vault'],
    check: async (target) => {
      const { address, chainId } = given(target, 'vault');
      const path = `/deposit-gateway/v2/depositAddresses/${address}`;
      refusedByGateway(await atVaults(target, { path, query: { sourceChainId: 'base' } }), 400);
      const found = bodyOf(await fetchVault(target, { address, chainId }));
      same(read(found, 'data.sourceChainId'), chainId, 'sourceChainId');
    },
    breakage: accepting({ path: BY_ID, status: 400 }, { data: {} }),
  },
]);

const CURRENT_RULES = inSection('Deposit vaults: current public path set', [
  {
    id: '/v1/deposit-gateway/deposit-addresses',
    title: 'creates a vault',
    needs: ['vaultRequest'],
    check: async (target) => {
      const reply = await requestVault(target);
      holds(reply.status >= 200 && reply.status < 300, `found ${reply.status}, expected 2xx`);
    },
    breakage: instead({ path: /deposit-addresses/ }, { status: 404 }),
  },
  {
    id: '/v1/deposit-gateway/submit/erc-3009',
    title: 'queues the funding of a vault',
    needs,
    check: async (target) => {
      const body = await transfer(target);
      text(bodyOf(await atVaults(target, { path: VAULTS.erc3009, body }), 202), 'data.id');
    },
    breakage: instead({ path: /submit\/erc-3009/ }, { status: 404 }),
  },
  {
    id: '/v1/deposit-gateway/submit/erc-2612',
    title: 'queues the funding of a vault',
    needs,
    check: async (target) => {
      const { place, amount } = await newVault(target);
      const { reply } = await submitPermit(target, { vault: place, value: amount });
      text(bodyOf(reply, 202), 'data.id');
    },
    breakage: instead({ path: /submit\/erc-2612/, status: 202 }, { status: 404 }),
  },
  {
    id: '/v1/deposit-gateway/{vaultAddress}',
    title: 'finds a vault',
    stage: 'finished',
    needs: ['vault'],
    check: async (target) => {
      const { address, chainId } = given(target, 'vault');
      const question = { path: `/v1/deposit-gateway/${address}`, query: { sourceChainId: String(chainId) } };
      const found = bodyOf(await call(target, { ...question, key: null }));
      same(text(found, 'data.vaultAddress').toLowerCase(), address.toLowerCase(), 'vaultAddress');
    },
    breakage: instead({ path: /^\/v1\/deposit-gateway\/0x/ }, { status: 404 }),
  },
  {
    id: '/v1/deposit-gateway/status',
    title: 'states the status of a job',
    stage: 'finished',
    needs: ['gatewayJob'],
    check: async (target) => {
      const id = given(target, 'gatewayJob');
      const found = bodyOf(await atVaults(target, { path: VAULTS.status, query: { id } }));
      same(read(found, 'data.id'), id, 'id');
    },
    breakage: instead({ path: /deposit-gateway\/status/ }, { status: 404 }),
  },
]);

export const VAULT_ENDPOINT_RULES: readonly Rule[] = [...TRANSFER_RULES, ...LOOKUP_RULES, ...CURRENT_RULES];
