import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Lie } from '../../sandbox/chains/lies.ts';
import { FULFILMENT_EVENT, PORTAL_ADDRESS } from '../../sandbox/contracts/portal.ts';
import { ENDPOINTS } from '../support/lying-faults.ts';
import { CHECKED_CHAINS, ONE_HOST, UNPINNED } from '../support/lying-orders.ts';
import type { PostgresProcess } from '../support/postgres-process.ts';
import { Program } from '../support/program.ts';
import type { RedisProcess } from '../support/redis-process.ts';
import { SANDBOX_KEY, SandboxProcess } from '../support/sandbox-process.ts';
import type { MailServer } from './mail-server.ts';
import type { MoodyReceiver } from './receiver.ts';

export const MAIN = join(import.meta.dirname, '../../src/main.ts');
export const PREFIX = 'intentwatch';
const TIME_SCALE = 10;
export const CLOSE_AFTER_MS = 20_000;
export const OVERDUE_AFTER_MS = 6_000;

/** Payments that chains show in place of the stated ones. */
const LIES: readonly Lie[] = [
  'reverted',
  'no-log',
  'short',
  'other-recipient',
  'worthless-token',
  'other-intent',
  'two-logs',
  'absent',
  'moved',
  'dropped',
];
const SHARE_OF_EACH_LIE = 0.04;

const PINNED = { address: PORTAL_ADDRESS, event: FULFILMENT_EVENT, hash: 'intentHash' };

/** More attempts than any failure here can use up. */
const RETRIES = { delays: ['200ms', '500ms', ...Array.from({ length: 90 }, () => '1s')] };

/** Environment of the programs of a run: the clock of this one, and the code cache of Node. */
export const ENV = Object.fromEntries(
  [
    'LD_PRELOAD',
    'FAKETIME',
    'FAKETIME_DONT_FAKE_MONOTONIC',
    'DONT_FAKE_MONOTONIC',
    'NODE_COMPILE_CACHE',
  ].flatMap((name): [string, string][] => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);

/** Starts a sandbox whose chains lie, in a process of its own. */
export async function startSandbox(
  seed: number,
  later: (close: () => Promise<unknown>) => void,
): Promise<SandboxProcess> {
  const flags = {
    port: 0,
    'control-port': 0,
    'quotes-port': 0,
    'transfers-per-second': 0,
    seed,
    wallets: 8,
    'time-scale': TIME_SCALE,
  };
  const args = [
    ...Object.entries(flags).map((flag) => `--${flag.join('=')}`),
    ...LIES.map((lie) => `--fault=payment:lie=${lie},rate=${SHARE_OF_EACH_LIE}`),
  ];
  const program = await Program.start(MAIN, ['sandbox', ...args], ENV);
  later(() => program.end('SIGKILL'));
  return SandboxProcess.of(program);
}

/** Two endpoints of a chain, on hosts of distinct names except for the chains that have one host. */
function endpointsOf({ url }: SandboxProcess, chainId: number): object[] {
  return ENDPOINTS.map((name) => {
    const own = `${url}/chains/${chainId}/${name}`;
    return {
      name,
      url: name === 'other' && !ONE_HOST.has(chainId) ? own.replace('127.0.0.1', 'localhost') : own,
      requestsPerSecond: 500,
    };
  });
}

/** The config of both daemons. */
export function configOf(deps: {
  sandbox: SandboxProcess;
  redis: RedisProcess;
  postgres: PostgresProcess;
  mailServer: MailServer;
  receivers: { backend: MoodyReceiver; ledger: MoodyReceiver };
  wallets: readonly string[];
}): string {
  const { sandbox, redis, postgres, mailServer, receivers, wallets } = deps;
  const webhook = ({ name, url, secret }: MoodyReceiver, retries: object): object => ({
    name,
    type: 'webhook',
    url,
    secrets: [secret],
    timeout: '2s',
    retries,
    allowPrivateNetwork: true,
    allowInsecure: true,
  });
  return stringify({
    upstream: { baseUrl: sandbox.url, apiKey: SANDBOX_KEY, requestsPerSecond: 60, timeout: '5s' },
    redis: { url: redis.url, prefix: PREFIX },
    server: { host: '127.0.0.1', port: 0 },
    smtp: { url: mailServer.url, from: 'Intentwatch <transfers@example.com>' },
    books: {
      url: postgres.url,
      closeAfter: `${CLOSE_AFTER_MS}ms`,
      report: { at: '00:00', to: ['treasury@example.com'] },
    },
    chains: Object.fromEntries(
      CHECKED_CHAINS.map((chainId) => [
        chainId,
        { rpc: endpointsOf(sandbox, chainId), ...(UNPINNED.has(chainId) ? {} : { fulfilments: PINNED }) },
      ]),
    ),
    receivers: [webhook(receivers.backend, RETRIES), webhook(receivers.ledger, { delays: ['500ms'] })],
    subscriptions: [
      {
        name: 'treasury',
        wallets,
        recipients: wallets,
        overdueAfter: `${OVERDUE_AFTER_MS}ms`,
        receivers: ['backend', 'ledger'],
      },
    ],
  });
}
