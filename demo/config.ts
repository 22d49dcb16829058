import { stringify } from 'yaml';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Subjects } from '../sandbox/world/world.ts';
import type { DemoMailbox } from './mailbox.ts';
import type { DemoReceiver } from './receiver.ts';

/** The share by which the demo's route must move to be reported, in millionths. */
export const DEMO_MOVED_BY_MILLIONTHS = 5_000n;

/** The config file of the demo, in a user's form. */
export function demoConfig(deps: {
  sandbox: Sandbox;
  subjects: Subjects;
  receiver: DemoReceiver;
  mailbox: DemoMailbox;
  secret: string;
  port: number;
}): string {
  const { sandbox, subjects, receiver, mailbox, secret, port } = deps;
  return stringify({
    upstream: {
      baseUrl: sandbox.url,
      apiKey: sandbox.apiKey,
      requestsPerSecond: 40,
      gatewayRequestsPerSecond: 20,
      quotesUrl: sandbox.quotesUrl,
      quotesRequestsPerSecond: 5,
    },
    server: { host: '127.0.0.1', port },
    chains: Object.fromEntries(
      sandbox.chains().map(({ chainId }) => [chainId, { rpc: endpoints(sandbox, chainId) }]),
    ),
    smtp: { url: mailbox.url, from: 'Intentwatch <transfers@example.com>' },
    receivers: [
      {
        name: 'backend',
        type: 'webhook',
        url: receiver.url,
        secrets: [secret],
        allowPrivateNetwork: true,
        allowInsecure: true,
      },
      { name: 'oncall', type: 'email', to: ['oncall@example.com'], concurrency: 4 },
    ],
    subscriptions: [
      { name: 'treasury', wallets: subjects.wallets, receivers: ['backend', 'oncall'] },
      {
        name: 'orders',
        quotes: subjects.quotes,
        gaslessJobs: subjects.gaslessJobs,
        vaults: subjects.vaults,
        metadata: { desk: 'orders' },
        receivers: ['backend', 'oncall'],
      },
      {
        name: 'prices',
        routes: [
          {
            name: 'base-to-optimism',
            source: { chainId: 8453, token: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' },
            destination: { chainId: 10, token: '0x0b2c639c533813f4aa9d7837caf62653d097ff85' },
            amount: '100000000',
            funder: '0x52908400098527886e0f7030069857d2e4169ee7',
            recipient: '0x52908400098527886e0f7030069857d2e4169ee7',
            movedBy: Number(DEMO_MOVED_BY_MILLIONTHS) / 1_000_000,
            every: '1s',
          },
        ],
        receivers: ['backend', 'oncall'],
      },
    ],
  });
}

/** Two endpoints of a chain under two host names, like those of two providers. */
function endpoints(sandbox: Sandbox, chainId: number): { name: string; url: string }[] {
  const [own, other] = [sandbox.rpcUrl(chainId, 'own'), sandbox.rpcUrl(chainId, 'other')];
  return [
    { name: 'own', url: own },
    { name: 'other', url: other.replace('127.0.0.1', 'localhost') },
  ];
}
