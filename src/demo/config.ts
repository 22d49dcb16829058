import { stringify } from 'yaml';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Subjects } from '../sandbox/world.ts';
import type { DemoMailbox } from './mailbox.ts';
import type { DemoReceiver } from './receiver.ts';

/** The config file of the demo, as a user would write it. */
export function demoConfig(parts: {
  sandbox: Sandbox;
  subjects: Subjects;
  receiver: DemoReceiver;
  mailbox: DemoMailbox;
  secret: string;
  port: number;
}): string {
  const { sandbox, subjects, receiver, mailbox, secret, port } = parts;
  return stringify({
    upstream: {
      baseUrl: sandbox.url,
      apiKey: sandbox.apiKey,
      requestsPerSecond: 40,
      gatewayRequestsPerSecond: 20,
    },
    server: { host: '127.0.0.1', port },
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
    ],
  });
}
