import { Command, InvalidArgumentError, Option } from 'commander';
import { provableDomain, type QuoteVerdict, verdictsOf } from '../domain/quotes/quote-signature.ts';
import { chainName } from '../domain/transfers/chains.ts';
import { describeAmount } from '../domain/transfers/money.ts';
import { OPEN_QUOTES_TIMEOUT_MS, OpenQuotesClient } from '../upstream/client/open-quotes-client.ts';
import { QuoteSigners } from '../upstream/client/quote-signers.ts';
import type { OpenQuotes } from '../upstream/wire/open-quote.ts';
import type { Quote, QuoteAnswer, QuoteRequest } from '../upstream/wire/quote.ts';
import {
  type ConnectionOptions,
  retry,
  upstreamOf,
  withClient,
  withConnection,
  withQuoteDomain,
} from './connection.ts';
import { table, utcTime } from './table.ts';
import { describeFlaw, exitOf } from './verify-quote.ts';

type Route = {
  type: 'exact-in' | 'exact-out' | 'custom';
  fromChain: number;
  fromToken: string;
  toChain: number;
  toToken: string;
  funder: string;
  recipient?: string;
  amount?: string;
  amountOut?: string;
  minAmountOut?: string;
  slippage?: string;
  dappId: string;
};

type QuoteOptions = ConnectionOptions & Route & { quotesUrl?: string; all?: true; open?: true; json?: true };

/** `quote`: prices a route, and verifies the returned quote. */
export function quoteCommand(): Command {
  const command = new Command('quote')
    .description(
      'Price a route at POST /v1/quotes, or with --open at the open quoting service. Funds nothing.',
    )
    .requiredOption('--from-chain <id>', 'source chain id', chainId)
    .requiredOption('--from-token <address>', 'source token')
    .requiredOption('--to-chain <id>', 'destination chain id', chainId)
    .requiredOption('--to-token <address>', 'destination token')
    .requiredOption('--funder <address>', 'who pays')
    .option('--recipient <address>', 'who is paid (default: the funder)')
    .addOption(
      new Option('--type <type>', 'what is fixed')
        .choices(['exact-in', 'exact-out', 'custom'])
        .default('exact-in'),
    )
    .option('--amount <units>', 'what goes in, in base units')
    .option('--amount-out <units>', 'what comes out, in base units')
    .option('--min-amount-out <units>', 'what must come out at least, in base units')
    .option('--slippage <fraction>', '0.0001 to 1; 0.005 is 0.5 %')
    .option('--dapp-id <name>', 'the name of the application that requests it', 'intentwatch')
    .option('--all', 'the quotes of all solvers')
    .option('--open', 'use the open quoting service, which needs no key (exact-in only)')
    .option(
      '--quotes-url <url>',
      'where the open quoting service is (default: upstream.quotesUrl of the config)',
    )
    .option('--json', 'print JSON, with the whole response: a file for verify-quote');
  return withQuoteDomain(withConnection(command)).action(quote);
}

function chainId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('expected a chain id, a number from 1');
  return Number(text);
}

async function quote(options: QuoteOptions): Promise<void> {
  if (options.open) return openQuote(options);
  const request = quoteRequest(options);
  const upstream = await upstreamOf(options, process.env);
  await withClient(upstream, async (client) => {
    const { value } = await retry(() => client.quote(request));
    if (options.json) return print(JSON.stringify(value.raw, null, 2));
    const signers = new QuoteSigners({ client, domain: provableDomain(upstream.quoteDomain) });
    const quotes = value.quotes.some(({ id }) => id === value.id) ? value.quotes : [value, ...value.quotes];
    const verdicts = await verdictsOf(
      quotes.map(({ raw }) => raw),
      (one) => signers.verify(one),
    );
    process.exitCode = exitOf(verdicts);
    print(quotes.map((one, index) => renderQuote(one, verdicts[index])).join('\n\n'));
    print(unreadableLines(value.unreadableQuotes));
  });
}

function quoteRequest(route: QuoteOptions): QuoteRequest {
  const { type, dappId, fromChain, fromToken, toChain, toToken, funder, recipient = funder } = route;
  const common = {
    dappId,
    ...(route.slippage === undefined ? {} : { slippage: route.slippage }),
    ...(route.all ? { options: { allQuotes: true } } : {}),
  };
  const source = { chainId: fromChain, token: fromToken, funder };
  const destination = { chainId: toChain, token: toToken, recipient };
  const minimum = route.minAmountOut === undefined ? {} : { minAmountOut: route.minAmountOut };
  switch (type) {
    case 'exact-in':
      refuse(route, 'amountOut');
      return {
        type,
        ...common,
        source: { ...source, amount: required(route, 'amount') },
        destination: { ...destination, ...minimum },
      };
    case 'exact-out':
      refuse(route, 'amount');
      refuse(route, 'minAmountOut');
      return {
        type,
        ...common,
        source,
        destination: { ...destination, amountOut: required(route, 'amountOut') },
      };
    case 'custom':
      return {
        type,
        ...common,
        source: { ...source, amount: required(route, 'amount') },
        destination: { ...destination, amountOut: required(route, 'amountOut'), ...minimum },
      };
    default:
      return type satisfies never;
  }
}

const AMOUNT_FLAGS = {
  amount: '--amount',
  amountOut: '--amount-out',
  minAmountOut: '--min-amount-out',
} as const;

function required(route: Route, name: keyof typeof AMOUNT_FLAGS): string {
  const value = route[name];
  if (value !== undefined) return value;
  throw new Error(`found no ${AMOUNT_FLAGS[name]}, expected it with --type ${route.type}`);
}

function refuse(route: Route, name: keyof typeof AMOUNT_FLAGS): void {
  if (route[name] === undefined) return;
  throw new Error(`found ${AMOUNT_FLAGS[name]}, expected none with --type ${route.type}`);
}

async function openQuote(options: QuoteOptions): Promise<void> {
  if (options.type !== 'exact-in')
    throw new Error(`found --open with --type ${options.type}, expected exact-in`);
  const { funder, recipient = funder } = options;
  const request = {
    dAppID: options.dappId,
    intentExecutionTypes: ['SELF_PUBLISH' as const],
    quoteRequest: {
      sourceChainID: options.fromChain,
      destinationChainID: options.toChain,
      sourceToken: options.fromToken,
      destinationToken: options.toToken,
      sourceAmount: required(options, 'amount'),
      funder,
      recipient,
    },
  };
  const { quotesUrl, proxy } = options.quotesUrl
    ? { quotesUrl: options.quotesUrl, proxy: null }
    : await upstreamOf(options, process.env);
  if (quotesUrl === null)
    throw new Error('found no --quotes-url and no upstream.quotesUrl, expected one of them');
  const client = new OpenQuotesClient({ quotesUrl, timeoutMs: OPEN_QUOTES_TIMEOUT_MS, proxy });
  try {
    const { value } = await retry(() => client.exactIn(request));
    print(
      options.json
        ? JSON.stringify({ data: value.quotes.map(({ raw }) => raw) }, null, 2)
        : renderOpen(value, options),
    );
  } finally {
    await client.close();
  }
}

function renderQuote(one: Quote, verdict: QuoteVerdict | undefined): string {
  const { source, destination } = one;
  const from = String(source.chainId);
  const to = destination.chainId === null ? null : String(destination.chainId);
  const out = (amount: string | null): string =>
    amount === null ? 'not stated' : describeAmount({ amount, token: destination.token, chainId: to });
  return table([
    ['quote', one.id],
    ['route', to === null ? chainName(from) : `${chainName(from)} to ${chainName(to)}`],
    [
      'in',
      source.amount === null
        ? 'not stated'
        : describeAmount({ amount: source.amount, token: source.token, chainId: from }),
    ],
    ['out', out(destination.amountOut)],
    ['at least', out(destination.minAmountOut)],
    ...one.fees.map(({ type, amount, token }) => [
      `fee, ${type}`,
      describeAmount({ amount, token, chainId: from }),
    ]),
    ['expires', utcTime(one.expiresAt)],
    ['intent', one.intentHash],
    ['signature', describeVerdict(verdict)],
  ]);
}

function describeVerdict(verdict: QuoteVerdict | undefined): string {
  if (verdict === undefined) return 'not verified';
  return verdict.valid ? `valid, signed by ${verdict.signer}` : describeFlaw(verdict);
}

function renderOpen({ quotes, unreadable }: OpenQuotes, route: Route): string {
  const to = String(route.toChain);
  const out = (amount: string | null): string =>
    amount === null ? '' : describeAmount({ amount, token: route.toToken, chainId: to });
  const rows = quotes.map((one) => [
    one.quoteId,
    out(one.destinationAmount),
    out(one.minimumDestinationAmount),
    one.estimatedFulfillSeconds === null ? '' : `${one.estimatedFulfillSeconds} s`,
    one.quoteExpiry === null ? '' : utcTime(one.quoteExpiry),
    one.solverId ?? '',
  ]);
  const lines =
    quotes.length === 0
      ? 'no solver quotes this route'
      : table([['QUOTE', 'OUT', 'AT LEAST', 'FILL', 'EXPIRES', 'SOLVER'], ...rows]);
  return [lines, unreadableLines(unreadable)].filter((part) => part !== '').join('\n');
}

function unreadableLines(unreadable: QuoteAnswer['unreadableQuotes']): string {
  return unreadable.map(({ index, reason }) => `quote ${index} cannot be read: ${reason}`).join('\n');
}

function print(text: string): void {
  if (text !== '') process.stdout.write(`${text}\n`);
}
