import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { deliveryStage, happen } from '../support/delivery-stage.ts';
import { opening } from '../support/opening.ts';

const open = opening();

const TOKEN = 'T0123456789abcdef';

test('an answer is stored with each attempt, without secrets; that to a first attempt that succeeds is not', async () => {
  const came: string[] = [];
  const server = createServer((request, response) => {
    const id = String(request.headers['webhook-id']);
    const isFirst = came.push(id) === 1;
    request.resume().once('end', () => {
      response.writeHead(isFirst ? 500 : 200).end(`${isFirst ? 'busy' : 'thanks'} at ${request.url}`);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.later(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${TOKEN}`;
  const stage = await deliveryStage(open, {
    hook: { hook: { url }, more: { retries: { delays: ['1s'] }, concurrency: 1 } },
  });
  await stage.start();
  const [failed, other] = await happen(stage, 2);
  if (failed === undefined || other === undefined) throw new Error('no events were made');
  await stage.drained('hook');
  const [retried, atOnce] = [came[0] ?? '', came.find((id) => id !== came[0]) ?? ''];
  const attempts = (await stage.deliveries.fact('hook', retried))?.attempts;
  expect(attempts).toMatchObject([
    { outcome: 'failed', httpStatus: 500, answer: 'busy at [secret]' },
    { outcome: 'delivered', httpStatus: 200, answer: 'thanks at [secret]' },
  ]);
  expect(await stage.deliveries.fact('hook', atOnce)).toMatchObject({
    outcome: 'delivered',
    attempts: [],
    answer: '',
  });
});
