import { createReadStream } from 'node:fs';
import { Command } from 'commander';
import { isJsonObject, JsonLimitError, type JsonValue, parseJson } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import {
  INTERFACE_DOMAIN,
  isUndecided,
  provableDomain,
  type QuoteVerdict,
  verdictsOf,
  verifyQuoteSignature,
} from '../domain/quotes/quote-signature.ts';
import { chainName } from '../domain/transfers/chains.ts';
import { codeOf } from '../errors.ts';
import { EXIT } from '../exit.ts';
import { whyEndless } from '../files.ts';
import { printableLine } from '../notifiers/printable.ts';
import { QuoteSigners } from '../upstream/client/quote-signers.ts';
import {
  type ConnectionOptions,
  quoteDomainOf,
  upstreamOf,
  withClient,
  withConnection,
  withQuoteDomain,
} from './connection.ts';
import { utcTime } from './table.ts';

const EXPECTED = 'expected a quote as POST /v1/quotes answered it, or - for stdin';

/** Reads a quote from a file (`-`: stdin) as JSON. Throws an Error that names the file. */
export async function readQuoteFile(file: string): Promise<JsonValue> {
  const json = await readBounded(file);
  try {
    return parseJson(json, { limits: LIMITS.quoteFile });
  } catch (error) {
    if (error instanceof JsonLimitError) throw new Error(`${file}: found ${error.message}`);
    throw new Error(
      `${file}: found ${json.trim() === '' ? 'nothing' : 'text that is not JSON'}, ${EXPECTED}`,
    );
  }
}

/** Reads a file, or stdin to its end, up to the limit of a quote's size. */
async function readBounded(file: string): Promise<string> {
  const { bytes: most } = LIMITS.quoteFile;
  const endless = file === '-' ? null : whyEndless(file, most);
  if (endless !== null) throw tooLong(file, endless);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
      chunks.push(Buffer.from(chunk));
      bytes += chunk.length;
      if (bytes > most) break;
    }
  } catch (error) {
    const code = codeOf(error) ?? '';
    throw new Error(
      `${file}: found ${WORDS.get(code) ?? `a file that cannot be read (${code})`}, ${EXPECTED}`,
    );
  }
  if (bytes > most) {
    throw tooLong(file, { found: `more than ${most} bytes`, expected: `at most ${most} bytes` });
  }
  return Buffer.concat(chunks).toString('utf8');
}

function tooLong(file: string, { found, expected }: { found: string; expected: string }): Error {
  return new Error(
    `${file}: found ${found}, expected ${expected} with a quote as POST /v1/quotes answered it`,
  );
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file'],
  ['EISDIR', 'a folder'],
]);

type VerifyQuoteOptions = ConnectionOptions & { signer?: string };

type NamedVerdict = { name: string; verdict: QuoteVerdict };

type Verify = (quote: JsonValue) => Promise<QuoteVerdict>;

/** `verify-quote`: checks the signature of a quote, and reports which part fails and why. */
export function verifyQuoteCommand(): Command {
  const command = new Command('verify-quote')
    .description(
      'Verify the signature of a quote, a JSON file as POST /v1/quotes answered it (- reads stdin).',
    )
    .argument('<file>', 'the quote')
    .option('--signer <address>', 'the signer of the source chain: then nothing is requested');
  return withQuoteDomain(withConnection(command)).action(verifyQuote);
}

async function verifyQuote(file: string, options: VerifyQuoteOptions): Promise<void> {
  const quote = await readQuoteFile(file);
  const verdicts = await (options.signer === undefined
    ? verifyAtUpstream(quote, options)
    : verifyBySigner(quote, options.signer, options));
  for (const { name, verdict } of verdicts) process.stdout.write(`${name}: ${describe(verdict)}\n`);
  process.exitCode = exitOf(verdicts.map(({ verdict }) => verdict));
}

/** The exit code for verdicts on quotes: 75 where those that are not valid are undecided. */
export function exitOf(verdicts: readonly QuoteVerdict[]): number {
  const invalid = verdicts.filter((verdict) => !verdict.valid);
  if (invalid.length === 0) return EXIT.done;
  return invalid.every(isUndecided) ? EXIT.tryAgain : EXIT.failed;
}

/** Describes a verdict that is not `valid` in one line. */
export function describeFlaw(verdict: Extract<QuoteVerdict, { valid: false }>): string {
  const { part, reason } = verdict;
  return `${isUndecided(verdict) ? 'UNVERIFIABLE' : 'NOT VALID'}, ${part}: ${printableLine(reason, 500)}`;
}

async function verifyAtUpstream(quote: JsonValue, options: ConnectionOptions): Promise<NamedVerdict[]> {
  const upstream = await upstreamOf(options, process.env);
  return withClient(upstream, (client) => {
    const signers = new QuoteSigners({ client, domain: provableDomain(upstream.quoteDomain) });
    return verifyAll(quote, (one) => signers.verify(one));
  });
}

/** Takes the domain from the option, else from the config that is named. */
async function verifyBySigner(
  quote: JsonValue,
  signer: string,
  options: ConnectionOptions,
): Promise<NamedVerdict[]> {
  const { quoteDomain } = options;
  const named = quoteDomain === undefined ? INTERFACE_DOMAIN : quoteDomainOf(quoteDomain);
  const isOfConfig = quoteDomain === undefined && options.config !== undefined;
  const setting = isOfConfig ? (await upstreamOf(options, process.env)).quoteDomain : named;
  const domain = provableDomain({ isExplicit: quoteDomain !== undefined, ...setting });
  const quoteSigner = checkSigner(signer);
  return verifyAll(quote, async (one) => {
    const isProven = await domain.isProven();
    const verdict = await verifyQuoteSignature({ quote: one, quoteSigner, domain, isProven });
    if (verdict.valid) await domain.prove();
    return verdict;
  });
}

function checkSigner(address: string): string {
  if (/^0x[0-9a-fA-F]{40}$/.test(address)) return address;
  throw new Error('--signer: expected an address of 0x and 40 hex digits');
}

/** The quote, and each of the quotes beside it: each has a signature of its own. */
async function verifyAll(quote: JsonValue, verify: Verify): Promise<NamedVerdict[]> {
  const others = isJsonObject(quote) && Array.isArray(quote.quotes) ? quote.quotes : [];
  const named = [
    { name: 'quote', value: quote },
    ...others.map((value, index) => ({ name: `quotes[${index}]`, value })),
  ];
  const verdicts = await verdictsOf(
    named.map(({ value }) => value),
    verify,
  );
  return verdicts.map((verdict, index) => ({ name: named[index]?.name ?? '', verdict }));
}

function describe(verdict: QuoteVerdict): string {
  if (!verdict.valid) return describeFlaw(verdict);
  const { id, intentHashes, expiresAt, sourceChainId } = verdict.quote;
  const expired = Number(expiresAt) * 1_000 <= Date.now();
  return [
    `valid, ${printableLine(id, 100)}`,
    `signed by ${verdict.signer} for ${chainName(String(sourceChainId))}`,
    intentHashes.length === 1 ? '1 intent' : `${intentHashes.length} intents`,
    `${expired ? 'EXPIRED' : 'expires'} ${utcTime(Number(expiresAt))}`,
  ].join(', ');
}
