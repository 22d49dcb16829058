import { z } from 'zod';
import { instead } from '../breakage.ts';
import { bodyOf } from '../call.ts';
import { conforms, read } from '../expectation.ts';
import { fetchJob, fetchVault } from '../funding.ts';
import { memberRules } from '../member-rules.ts';
import { given, inSection, type Rule, type Target } from '../rule.ts';
import { baseUnits, chainId, evmAddress, intentHash, nonEmpty, unixSeconds } from '../shape.ts';

const JOBS = /^\/deposit-gateway\/v1\/gasless\/jobs\//;
const BY_ID = /^\/deposit-gateway\/v2\/depositAddresses\//;

async function jobs(target: Target): Promise<unknown[]> {
  const ids = [given(target, 'gatewayJob'), given(target, 'failedGatewayJob')];
  const found: unknown[] = [];
  for (const id of ids) found.push(read(bodyOf(await fetchJob(target, id)), 'data'));
  return found;
}

const vault = async (target: Target): Promise<unknown> =>
  read(bodyOf(await fetchVault(target, given(target, 'vault'))), 'data');

const JOB_RULES = inSection(
  'Gasless job record',
  [
    {
      id: 'gasless job: data',
      title: 'a job comes in a data envelope',
      check: async (target) => {
        for (const job of await jobs(target)) conforms(z.looseObject({ id: nonEmpty }), job, 'data');
      },
      breakage: instead({ path: JOBS }, { body: { id: '1', status: 'COMPLETED' } }),
    },
    ...memberRules({
      prefix: 'gasless job',
      records: jobs,
      on: { path: JOBS },
      place: 'data',
      rows: [
        { name: 'id', title: 'is text where it is shown', schema: nonEmpty, broken: 12 },
        { name: 'status', title: 'is one name where it is shown', schema: nonEmpty },
        { name: 'permitTxHash', title: 'is text where it is shown', schema: nonEmpty },
        { name: 'transferTxHash', title: 'is text where it is shown', schema: nonEmpty },
        { name: 'intentHash', title: 'is a hash where it is shown', schema: intentHash },
        { name: 'amount', title: 'is base units where it is shown', schema: baseUnits, broken: 100 },
        { name: 'error', title: 'is text where it is shown', schema: z.string() },
      ],
    }),
  ],
  { stage: 'finished', needs: ['gatewayJob', 'failedGatewayJob'] },
);

const VAULT_RULES = inSection(
  'Vault record',
  [
    {
      id: 'vault: data',
      title: 'a vault comes in a data envelope',
      check: async (target) => {
        conforms(z.looseObject({ vaultAddress: evmAddress }), await vault(target), 'data');
      },
      breakage: instead({ path: BY_ID }, { body: { vaultAddress: `0x${'1'.repeat(40)}` } }),
    },
    ...memberRules({
      prefix: 'vault',
      records: async (target) => [await vault(target)],
      on: { path: BY_ID },
      place: 'data',
      rows: [
        { name: 'vaultAddress', title: 'is an address', schema: evmAddress, required: true },
        { name: 'amount', title: 'is base units', schema: baseUnits, required: true, broken: 100 },
        { name: 'deadline', title: 'is Unix seconds', schema: unixSeconds, required: true, broken: String },
        { name: 'state', title: 'is a word', schema: nonEmpty, required: true },
        { name: 'intentHash', title: 'is a hash', schema: intentHash, required: true },
        { name: 'sourceChainId', title: 'is an integer', schema: chainId, required: true },
      ],
    }),
  ],
  { stage: 'finished', needs: ['vault'] },
);

export const GATEWAY_RECORD_RULES: readonly Rule[] = [...JOB_RULES, ...VAULT_RULES];
