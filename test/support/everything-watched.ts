import type { Subjects } from '../../sandbox/world/world.ts';

/** A config's subscriptions to everything a sandbox has, for one receiver: every second gasless job at the deposit gateway. */
export function subscribedToAll(
  { wallets, intents, quotes, gaslessJobs, vaults }: Pick<Subjects, Kind>,
  receiver: string,
): object[] {
  const jobs = gaslessJobs.map((id, index) => (index % 2 === 0 ? id : { id, endpoint: 'gateway' }));
  return [
    { name: 'treasury', wallets, receivers: [receiver] },
    { name: 'orders', intents, quotes, gaslessJobs: jobs, vaults, receivers: [receiver] },
  ];
}

/** Every transfer is one of a watched wallet; the other subjects are watched where these subscriptions name them. */
export function watchedByAll({
  quotes,
  gaslessJobs,
  vaults,
}: Pick<Subjects, Kind>): (subject: string) => boolean {
  const named = new Set([
    ...quotes.map((uuid) => `quote:${uuid}`),
    ...gaslessJobs.map((uuid, index) => (index % 2 === 0 ? `gasless:${uuid}` : `gasless:gateway:${uuid}`)),
    ...vaults.map(({ address, chainId }) => `vault:${chainId}:${address.toLowerCase()}`),
  ]);
  return (subject) => subject.startsWith('intent:') || named.has(subject);
}

type Kind = 'wallets' | 'intents' | 'quotes' | 'gaslessJobs' | 'vaults';
