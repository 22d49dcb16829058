import { Sandbox, type SandboxOptions } from '../../sandbox/sandbox.ts';
import { INTERFACE_DOMAIN } from '../../src/domain/quotes/quote-signature.ts';

/** A deployment of the upstream: options of a sandbox, and the settings of a daemon that follow from them. */
type Deployment = {
  sandbox: SandboxOptions;
  /** The EIP-712 domain of its quotes. */
  domain: { name: string; version: string };
  /** Members of `upstream` that a config needs. */
  upstream: { quoteDomain?: { name: string }; gateway?: { prefix: string; generation: 'current' } };
  takesKey: boolean;
};

const OTHER_DOMAIN = 'OtherQuotesV3';
const OTHER_PREFIX = 'other-vaults';

/** The deployments by the value of `DEPLOYMENT`. The same tests pass against each; only these settings differ. */
const DEPLOYMENTS: Readonly<Record<string, Deployment>> = {
  interface: { sandbox: {}, domain: INTERFACE_DOMAIN, upstream: {}, takesKey: true },
  second: {
    sandbox: {
      quoteDomain: OTHER_DOMAIN,
      gatewayPrefix: OTHER_PREFIX,
      requiresKey: false,
      wire: '0.9.0',
      faults: [{ type: 'oldest-first', path: '/', rate: 1 }],
    },
    domain: { name: OTHER_DOMAIN, version: '1' },
    upstream: {
      quoteDomain: { name: OTHER_DOMAIN },
      gateway: { prefix: OTHER_PREFIX, generation: 'current' },
    },
    takesKey: false,
  },
};

function chosen(wanted = 'interface'): Deployment {
  const deployment = DEPLOYMENTS[wanted];
  if (deployment !== undefined) return deployment;
  throw new Error(`found DEPLOYMENT=${wanted}, expected ${Object.keys(DEPLOYMENTS).join(' or ')}`);
}

/** The deployment of this run. */
export const DEPLOYMENT = chosen(process.env.DEPLOYMENT);

/** A sandbox of this deployment. */
export function newSandbox(options: SandboxOptions = {}): Sandbox {
  return new Sandbox({ ...DEPLOYMENT.sandbox, ...options });
}

/** The `upstream` of a config at this deployment; a `quoteDomain` of null stays unset. */
export function upstreamSettings(section: object): Record<string, unknown> {
  const settings: Record<string, unknown> = { ...DEPLOYMENT.upstream, ...section };
  const isLeftOut = (name: string, value: unknown): boolean =>
    value === null || value === undefined || (name === 'apiKey' && !DEPLOYMENT.takesKey);
  return Object.fromEntries(Object.entries(settings).filter(([name, value]) => !isLeftOut(name, value)));
}

/** A request at this deployment. */
type DeploymentRequest = { path: string; query: Record<string, string> };

/** The request in the names of the interface, for a test that answers by them; null for one that this deployment refuses. */
export function inTheInterface(
  { path, query }: DeploymentRequest,
  key: string | undefined,
): DeploymentRequest | null {
  const { gateway } = DEPLOYMENT.upstream;
  if (!DEPLOYMENT.takesKey && key !== undefined) return null;
  if (gateway === undefined) return { path, query };
  const [, vault] = new RegExp(`^/v1/${gateway.prefix}/([^/]+)$`).exec(path) ?? [];
  if (vault === undefined) return path.includes('deposit-gateway') ? null : { path, query };
  const { id, ...rest } = query;
  return vault === 'status'
    ? { path: `/deposit-gateway/v1/gasless/jobs/${id}`, query: rest }
    : { path: `/deposit-gateway/v2/depositAddresses/${vault}`, query };
}
