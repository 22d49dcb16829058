import { createReadStream } from 'node:fs';
import { Command } from 'commander';
import { whyEndless } from '../config/file/source.ts';
import { isJsonObject, JsonLimitError, type JsonValue, parseJson } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { type QuoteVerdict, verifyQuoteSignature } from '../domain/quotes/quote-signature.ts';
import { chainName } from '../domain/transfers/chains.ts';
import { EXIT } from '../exit.ts';
import { printableLine } from '../notifiers/printable.ts';
import { QuoteSigners } from '../upstream/client/quote-signers.ts';
import { type ConnectionOptions, upstreamOf, withClient, withConnection } from './connection.ts';
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
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
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

type Verify = (quote: JsonValue) => Promise<QuoteVerdict>;

/** `verify-quote`: checks the signature of a quote, and reports which part fails and why. */
export function verifyQuoteCommand(): Command {
  const command = new Command('verify-quote')
    .description(
      'Verify the signature of a quote, a JSON file as POST /v1/quotes answered it (- reads stdin).',
    )
    .argument('<file>', 'the quote')
    .option('--signer <address>', 'the signer of the source chain: then nobody is asked');
  return withConnection(command).action(verifyQuote);
}

async function verifyQuote(file: string, options: VerifyQuoteOptions): Promise<void> {
  const quote = await readQuoteFile(file);
  const { signer } = options;
  const verdicts =
    signer === undefined
      ? await withClient(await upstreamOf(options, process.env), (client) => {
          const signers = new QuoteSigners({ client });
          return verifyAll(quote, (one) => signers.verify(one));
        })
      : await verifyAll(quote, (one) =>
          verifyQuoteSignature({ quote: one, quoteSigner: checkSigner(signer) }),
        );
  for (const { name, verdict } of verdicts) {
    process.stdout.write(`${name}: ${describe(verdict)}\n`);
    if (!verdict.valid) process.exitCode = EXIT.failed;
  }
}

function checkSigner(address: string): string {
  if (/^0x[0-9a-fA-F]{40}$/.test(address)) return address;
  throw new Error('--signer: expected an address of 0x and 40 hex digits');
}

/** The quote, and each of the quotes beside it: each has a signature of its own. */
async function verifyAll(
  quote: JsonValue,
  verify: Verify,
): Promise<{ name: string; verdict: QuoteVerdict }[]> {
  const others = isJsonObject(quote) && Array.isArray(quote.quotes) ? quote.quotes : [];
  const named = [
    { name: 'quote', value: quote },
    ...others.map((value, index) => ({ name: `quotes[${index}]`, value })),
  ];
  const verdicts = [];
  for (const { name, value } of named) verdicts.push({ name, verdict: await verify(value) });
  return verdicts;
}

function describe(verdict: QuoteVerdict): string {
  if (!verdict.valid) return `NOT VALID, ${verdict.part}: ${printableLine(verdict.reason, 500)}`;
  const { id, intentHashes, expiresAt, sourceChainId } = verdict.quote;
  const expired = Number(expiresAt) * 1_000 <= Date.now();
  return [
    `valid, ${printableLine(id, 100)}`,
    `signed by ${verdict.signer} for ${chainName(String(sourceChainId))}`,
    intentHashes.length === 1 ? '1 intent' : `${intentHashes.length} intents`,
    `${expired ? 'EXPIRED' : 'expires'} ${utcTime(Number(expiresAt))}`,
  ].join(', ');
}
