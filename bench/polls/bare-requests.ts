import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';
import { walletOf } from '../deliveries/stage.ts';

/** Minimal polling of wallets: undici requests their pages in turn and evenly, and `JSON.parse` reads them. */
const { values } = parseArgs({
  options: {
    upstream: { type: 'string', default: '' },
    wallets: { type: 'string', default: '1' },
    'per-second': { type: 'string', default: '1' },
  },
});
const [wallets, perSecond] = [Number(values.wallets), Number(values['per-second'])];
const pool = new Pool(values.upstream);

async function poll(number: number): Promise<void> {
  const path = `/v1/intents/status?wallet=${walletOf(number % wallets)}&limit=50`;
  const { body } = await pool.request({ path, method: 'GET', headers: { 'x-api-key': 'sandbox-key' } });
  JSON.parse(await body.text());
}

console.log('began');
const fromMs = performance.now();
for (let number = 0; ; number += 1) {
  void poll(number);
  await wait(Math.max(0, fromMs + (1_000 * (number + 1)) / perSecond - performance.now()));
}
