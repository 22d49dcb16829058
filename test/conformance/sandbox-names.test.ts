import { expect, test } from 'vitest';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { buildUpstream, upstreamSchema } from '../../src/config/sections/upstream.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';

const { later, started } = opening();

const PREFIX = 'acme-vaults';

/** A sandbox of another prefix, whose transfers have all ended. */
async function deployment(): Promise<Sandbox> {
  const sandbox = await started(
    new Sandbox({ timeScale: 2_000, transfersPerSecond: 0, gatewayPrefix: PREFIX }),
  );
  await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0);
  return sandbox;
}

test.each([
  'legacy',
  'current',
])('vaults and jobs are found at a deployment with another prefix, %s paths', async (generation) => {
  const sandbox = await deployment();
  const { vaults, gaslessJobs } = sandbox.subjects();
  const section = { baseUrl: sandbox.url, apiKey: 'another-key', gateway: { prefix: PREFIX, generation } };
  const client = new UpstreamClient(buildUpstream(upstreamSchema.parse(section)));
  later(() => client.close());
  const [vault] = vaults;
  if (vault === undefined) throw new Error('the sandbox has a vault');
  const { value } = await client.vault({ address: vault.address, chainId: vault.chainId });
  expect(value.vaultAddress?.toLowerCase()).toBe(vault.address.toLowerCase());
  expect((await client.gaslessJob(gaslessJobs[0] ?? '')).httpStatus).toBe(200);
});

test('no path of the interface leads to the vaults of a deployment with another prefix', async () => {
  const sandbox = await deployment();
  const { vaults } = sandbox.subjects();
  const statuses = await Promise.all(
    ['/deposit-gateway/v2/depositAddresses', '/v1/deposit-gateway', `/v1/${PREFIX}`].map(async (path) => {
      const url = `${sandbox.url}${path}/${vaults[0]?.address}?sourceChainId=${vaults[0]?.chainId}`;
      return (
        await fetch(url, { headers: path.startsWith('/v1/deposit') ? { 'x-api-key': 'sandbox-key' } : {} })
      ).status;
    }),
  );
  expect(statuses).toEqual([404, 403, 200]);
});
