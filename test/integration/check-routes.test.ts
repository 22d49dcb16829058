import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { configYaml, testPrefix } from '../support/daemon.ts';
import { newSandbox } from '../support/deployment.ts';
import { opening } from '../support/opening.ts';
import { ROUTE_ITEM } from '../support/routes.ts';
import { orderAt } from '../support/sandbox-order.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { Stage } from '../support/stage.ts';

const { started } = opening();

describe('check --live', () => {
  test('prices the first route of each service, and fails where the quoting service does', async ({
    onTestFinished,
  }) => {
    const sandbox = await started(newSandbox({ transfersPerSecond: 0 }));
    const stage = new Stage(onTestFinished);
    const file = join(await stage.folder(), 'intentwatch.yaml');
    const { url: baseUrl, quotesUrl } = sandbox;
    const partner = { ...ROUTE_ITEM, name: 'partner', service: 'v1' };
    const yaml = configYaml({
      baseUrl,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: 'http://127.0.0.1:1' } },
      subscriptions: [{ name: 'prices', routes: [ROUTE_ITEM, partner], receivers: ['hook'] }],
      more: { upstream: { baseUrl, quotesUrl, apiKey: 'sandbox-key' } },
    });
    await writeFile(file, yaml);
    const check = async () => {
      const { code, out } = await runCommand(['check', '--live', '--config', file]);
      const lines = out.split('\n');
      const lineOf = (text: string) => lines.find((one) => one.includes(text))?.replace(/ +/g, ' ');
      return { code, line: lineOf('open quoting service'), partner: lineOf('prices with the key') };
    };
    const partnerLine = `ok prices with the key, ${baseUrl}/v1/quotes answers; 3 signed quotes for the route partner`;
    const name = `open quoting service ${quotesUrl}`;
    expect(await check()).toEqual({
      code: 0,
      line: `ok ${name} answers; 3 solvers for the route base-to-optimism`,
      partner: partnerLine,
    });
    await fetch(`${sandbox.controlUrl}/faults`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'error', code: 'service-unavailable', path: '/api/v3' }),
    });
    const { code, line, partner: priced } = await check();
    expect(priced).toBe(partnerLine);
    expect([code, line?.startsWith(`FAILED ${name} upstream open-quotes: found HTTP 503`)]).toEqual([
      75,
      true,
    ]);
  });

  test('requests a transfer at the open source, and fails where it has no such path', async ({
    onTestFinished,
  }) => {
    const sandbox = await started(newSandbox({ transfersPerSecond: 0 }));
    const { intentHash } = await orderAt(sandbox);
    const stage = new Stage(onTestFinished);
    const file = join(await stage.folder(), 'intentwatch.yaml');
    const check = async ({ quotesUrl, statusSource, intent }: Record<string, string>) => {
      const yaml = configYaml({
        baseUrl: sandbox.url,
        redisUrl: inject('redisUrl'),
        prefix: testPrefix(),
        receivers: { hook: { url: 'http://127.0.0.1:1' } },
        subscriptions: [{ name: 'one', intents: [intent], receivers: ['hook'] }],
        upstream: { quotesUrl, statusSource },
      });
      await writeFile(file, yaml);
      const { code, out } = await runCommand(['check', '--live', '--config', file]);
      const lines = out.split('\n').map((line) => line.replace(/ +/g, ' '));
      const of = (text: string) => lines.filter((line) => line.includes(text));
      return { code, open: of('statuses without a key'), v1: of('takes the key').length };
    };
    const { quotesUrl } = sandbox;
    const name = `statuses without a key, ${quotesUrl}`;
    expect(await check({ quotesUrl, statusSource: 'open', intent: intentHash })).toEqual({
      code: 0,
      open: [`ok ${name} answers, with the status of the first intent`],
      v1: 0,
    });
    expect(await check({ quotesUrl, statusSource: 'both', intent: hashOf(1) })).toEqual({
      code: 0,
      open: [`ok ${name} answers, but does not know the first intent yet`],
      v1: 1,
    });
    const elsewhere = await check({
      quotesUrl: `${quotesUrl}/elsewhere`,
      statusSource: 'open',
      intent: intentHash,
    });
    expect([elsewhere.code, elsewhere.open[0]?.startsWith(`FAILED ${name}/elsewhere`)]).toEqual([75, true]);
  });
});
