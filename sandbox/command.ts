import { Command, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { type Fault, faultSchema } from './faults/fault.ts';
import { WIRES, type Wire } from './quotes/quote-shape.ts';
import { Sandbox } from './sandbox.ts';

const DEFAULT_QUOTES_PORT = 8082;
const DEFAULT_KEY = 'sandbox-key';

/** Waits for the signal that ends a program: `wait` resolves at it, `release` removes the listeners. */
type Interrupted = () => { wait: Promise<unknown>; release: () => void };

/** `sandbox`: runs a local upstream for development, with transfers that change, until it is interrupted. */
export function sandboxCommand(interrupted: Interrupted): Command {
  return new Command('sandbox')
    .description(
      'Serve a local implementation of the upstream, with transfers that start, fill, settle and refund.',
    )
    .option('--host <address>', 'where all ports listen', '127.0.0.1')
    .option('--port <port>', 'port of the upstream (0: any free one)', wholeNumber, 8080)
    .option(
      '--control-port <port>',
      'port that reports what really happened (0: any free one)',
      wholeNumber,
      8081,
    )
    .option(
      '--quotes-port <port>',
      'port of the open quoting service (0: any free one; default: 8082, or any where --port is 0)',
      wholeNumber,
    )
    .option('--seed <number>', 'the same seed gives the same wallets, ids and lives', wholeNumber, 1)
    .option('--time-scale <factor>', 'how many times faster than usual transfers live', number, 1)
    .option('--api-key <key>', 'the key that v1 endpoints accept', DEFAULT_KEY)
    .option('--no-api-key', 'v1 endpoints answer without a key too')
    .option('--transfers-per-second <rate>', 'births per second; 0 stops them', number, 0.5)
    .option('--wallets <count>', 'how many wallets send and receive', wholeNumber, 10)
    .option(
      '--wallet-skew <exponent>',
      'how much more the first wallets send and receive than the last (Zipf; 0: all alike)',
      number,
      0,
    )
    .option('--past-transfers <count>', 'how many transfers have ended in the days before', wholeNumber, 0)
    .option(
      '--finality-seconds <seconds>',
      'how many seconds blocks of the chains take to be final',
      number,
      60,
    )
    .addOption(
      new Option(
        '--wire <format>',
        'shape of quotes: as recorded at a deployment, or the members of the interface alone',
      )
        .choices(WIRES)
        .default('0.9.0'),
    )
    .option(
      '--local-intents',
      'quote USDC from EVM chains as intents that are fulfilled there, and carried on by its issuer',
    )
    .option(
      '--quote-domain <name>',
      'the EIP-712 name under which quotes are signed: a deployment has its own',
      'ServiceQuoteV1',
    )
    .option(
      '--gateway-prefix <word>',
      'the word in the paths of the deposit-vault endpoints: a deployment has its own',
      'deposit-gateway',
    )
    .addOption(
      new Option('--evm <engine>', 'what executes transactions on the EVM chains; anvil must be on PATH')
        .choices(['js', 'anvil'])
        .default('js'),
    )
    .option('--faucet', 'let POST /faucet of the control port give coins and tokens', false)
    .option(
      '--fault <type:key=value,…>',
      'a fault from the start, such as latency:ms=300 or error:code=internal-error,rate=0.1 (repeatable)',
      addFault,
      [],
    )
    .action((flags: Flags) => serve(flags, interrupted));
}

type Flags = {
  host: string;
  port: number;
  controlPort: number;
  quotesPort?: number;
  seed: number;
  timeScale: number;
  /** False: `--no-api-key`. */
  apiKey: string | false;
  wire: Wire;
  localIntents?: boolean;
  transfersPerSecond: number;
  wallets: number;
  walletSkew: number;
  pastTransfers: number;
  finalitySeconds: number;
  quoteDomain: string;
  gatewayPrefix: string;
  evm: 'js' | 'anvil';
  faucet: boolean;
  fault: Fault[];
};

async function serve({ fault: faults, apiKey, ...flags }: Flags, interrupted: Interrupted): Promise<void> {
  const sandbox = new Sandbox({
    ...flags,
    faults,
    evm: flags.evm === 'js' ? 'js' : { anvil: 'anvil' },
    apiKey: apiKey === false ? DEFAULT_KEY : apiKey,
    requiresKey: apiKey !== false,
    quotesPort: flags.quotesPort ?? (flags.port === 0 ? 0 : DEFAULT_QUOTES_PORT),
  });
  const stop = interrupted();
  await sandbox.start();
  const chains = sandbox
    .chains()
    .map(({ chainId, name }) => `${chainId} ${name}`)
    .join(', ');
  process.stdout.write(
    `${[
      `upstream:     ${sandbox.url}   (${apiKey === false ? 'no key' : `x-api-key: ${sandbox.apiKey}`})`,
      `control:      ${sandbox.controlUrl}   (GET /subjects /transitions /answers /showings /payments /requests, POST /pace /market /chains /fund${flags.faucet ? ' /faucet' : ''} /rotate-signer /faults)`,
      `quotes:       ${sandbox.quotesUrl}   (no key)`,
      `chains:       ${sandbox.url}/chains/<chainId>/<any name>   (JSON-RPC: ${chains})`,
      `a wallet:     ${sandbox.subjects().wallets[0] ?? 'none'}`,
    ].join('\n')}\n`,
  );
  await stop.wait;
  await sandbox.close();
  stop.release();
}

/** Parses `type` or `type:key=value,key=value`; numeric values become numbers. */
function addFault(text: string, earlier: Fault[]): Fault[] {
  const [type = '', ...rest] = text.split(':');
  const members = rest
    .join(':')
    .split(',')
    .filter((member) => member !== '');
  const pairs = members.map((member): [string, string | number] => {
    const [key = '', ...value] = member.split('=');
    const found = value.join('=');
    return [key, found !== '' && Number.isFinite(Number(found)) ? Number(found) : found];
  });
  const keys = ['type', ...pairs.map(([key]) => key)];
  const twice = keys.find((key, at) => keys.indexOf(key) !== at);
  if (twice !== undefined) throw new InvalidArgumentError(`${twice}: found twice, expected once`);
  const found = new Map<PropertyKey, string | number>([...pairs, ['type', type]]);
  const fault = faultSchema.safeParse(Object.fromEntries(found));
  if (fault.success) return [...earlier, fault.data];
  throw new InvalidArgumentError(fault.error.issues.map((issue) => problemOf(issue, found)).join('; '));
}

function problemOf(issue: z.core.$ZodIssue, members: ReadonlyMap<PropertyKey, string | number>): string {
  if (issue.code === 'unrecognized_keys') return `found ${issue.keys.join(', ')}, expected none of these`;
  const [name = ''] = issue.path;
  const found = members.get(name) ?? '';
  // Of "Invalid input: expected number, received undefined" the expected value alone: the schema has no value.
  const [, expected] = /expected (.*?)(?:, received .*)?$/.exec(issue.message) ?? [];
  return `${String(name)}: found ${found === '' ? 'none' : JSON.stringify(found)}, expected ${expected ?? issue.message}`;
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0) {
    throw new InvalidArgumentError('expected a number that is not negative');
  }
  return value;
}

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('expected a whole number');
  return Number(text);
}
