import type { Hex } from 'viem';
import { viem } from '../evm.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { foldHex } from '../subjects/subject.ts';

/** Part of a quote, or of its reference, that makes the signature invalid. */
export type QuotePart =
  | 'quote'
  | 'id'
  | 'intentHash'
  | 'steps'
  | 'expiresAt'
  | 'source.chainId'
  | 'signature'
  | 'quoteSigner'
  | 'quoteDomain';

/** Name and version of the EIP-712 domain under which a deployment signs its quotes. */
export type QuoteDomain = { name: string; version: string };

/** The domain of the interface (Quote signature). A deployment may have another name. */
export const INTERFACE_DOMAIN: QuoteDomain = { name: 'ServiceQuoteV1', version: '1' };

/**
 * A domain that is `unproven` until a quote verifies under it, or a config names it; then it is `proven` for good. Under an
 * unproven domain a quote of another signer is not invalid: its verdict is the part `quoteDomain`.
 */
export type ProvableDomain = QuoteDomain & { isProven: () => Promise<boolean>; prove: () => Promise<void> };

/** The provable domain of one run of a program, which stores nothing. */
export function provableDomain({
  name,
  version,
  isExplicit,
}: QuoteDomain & { isExplicit: boolean }): ProvableDomain {
  let isProven = isExplicit;
  return {
    name,
    version,
    isProven: async () => isProven,
    prove: async () => {
      isProven = true;
    },
  };
}

/** Signed content of a quote. */
export type SignedQuote = {
  /** With its prefix `quote:`. */
  id: string;
  /** In lower case, unique, in ascending order. */
  intentHashes: Hex[];
  /** Unix seconds. */
  expiresAt: bigint;
  sourceChainId: number;
  signature: Hex;
};

/** Result of a verification; an invalid signature has the part and the reason. */
export type QuoteVerdict =
  | { valid: true; quote: SignedQuote; signer: string }
  | {
      valid: false;
      part: QuotePart;
      reason: string;
      /** Recovered signer of the present content; null when none could be recovered. */
      recovered: string | null;
    };

/** True when a quote cannot be judged: its signer, or the name under which it was signed, is unknown. */
export function isUndecided(verdict: QuoteVerdict): boolean {
  return !verdict.valid && (verdict.part === 'quoteSigner' || verdict.part === 'quoteDomain');
}

/** Signer that a chain publishes. */
export type ChainSigner = { chainId: number; quoteSigner: string };

const TYPES = {
  Quote: [
    { name: 'id', type: 'string' },
    { name: 'intentHashes', type: 'bytes32[]' },
    { name: 'expiresAt', type: 'uint64' },
  ],
} as const;

const MAX_UINT64 = 2n ** 64n - 1n;

/** The last byte of a signature selects one of two keys: 27 or 28, or the bare 0 or 1. */
const RECOVERY_BYTES = ['1b', '1c', '00', '01'];

/** Most other chains whose signers are tried: each takes a millisecond of a core. */
const MOST_OTHER_CHAINS = 64;

/** More intents than a quote ever names. Beyond this number, the added intent is not searched for. */
const MAX_SEARCHED_HASHES = 16;

/**
 * Verifies the EIP-712 signature of a quote from `POST /v1/quotes`, or of one of its `quotes`, against the source
 * chain's `quoteSigner`, under a domain. One made for one of `otherChains` is reported as such. Expiry is not checked.
 */
export async function verifyQuoteSignature({
  quote: value,
  quoteSigner,
  domain = INTERFACE_DOMAIN,
  isProven = true,
  otherChains = [],
}: {
  quote: JsonValue;
  quoteSigner: string;
  domain?: QuoteDomain;
  isProven?: boolean;
  otherChains?: readonly ChainSigner[];
}): Promise<QuoteVerdict> {
  const read = readSignedQuote(value);
  if ('part' in read) return { valid: false, ...read, recovered: null };
  const { quote } = read;
  if (!/^0x[0-9a-fA-F]{40}$/.test(quoteSigner)) {
    const reason = 'found no address of 0x and 40 hex digits as the signer of the source chain';
    return { valid: false, part: 'quoteSigner', reason, recovered: null };
  }
  const recovered = await recoverSigner(quote, domain);
  if (recovered === null) {
    const reason = 'no signer can be recovered from it: it was damaged';
    return { valid: false, part: 'signature', reason, recovered };
  }
  if (sameAddress(recovered, quoteSigner)) return { valid: true, quote, signer: recovered };
  const cause = await findCause(quote, { quoteSigner, domain, otherChains });
  const other = { quote, recovered, quoteSigner, domain };
  return {
    valid: false,
    recovered,
    ...(cause ?? (isProven ? unknownCause(other) : unprovenDomain(other))),
  };
}

/**
 * Verifies the quotes of one answer, one after the other. A valid one proves the domain: those before it that were undecided are
 * verified again.
 */
export async function verdictsOf(
  quotes: readonly JsonValue[],
  verify: (quote: JsonValue) => Promise<QuoteVerdict>,
): Promise<QuoteVerdict[]> {
  const verdicts: QuoteVerdict[] = [];
  for (const quote of quotes) verdicts.push(await verify(quote));
  if (!verdicts.some(({ valid }) => valid)) return verdicts;
  for (const [index, quote] of quotes.entries()) {
    const verdict = verdicts[index];
    if (verdict !== undefined && isUndecided(verdict)) verdicts[index] = await verify(quote);
  }
  return verdicts;
}

/** The verdict on a quote that is valid; null for any other, whose flaw is not searched for. */
export async function validVerdict(
  value: JsonValue,
  { quoteSigner, domain }: { quoteSigner: string; domain: QuoteDomain },
): Promise<QuoteVerdict | null> {
  const read = readSignedQuote(value);
  if ('part' in read) return null;
  const recovered = await recoverSigner(read.quote, domain);
  if (recovered === null || !sameAddress(recovered, quoteSigner)) return null;
  return { valid: true, quote: read.quote, signer: recovered };
}

/** Reads the signed content of a quote strictly; on a deviation from the interface, returns the part and the reason. */
export function readSignedQuote(
  value: JsonValue,
): { quote: SignedQuote } | { part: QuotePart; reason: string } {
  if (!isJsonObject(value)) return { part: 'quote', reason: 'found no JSON object, expected a quote' };
  const { id } = value;
  if (typeof id !== 'string' || !/^quote:./.test(id)) {
    return { part: 'id', reason: 'expected text that begins with quote:' };
  }
  const hashes = signedHashes(value);
  if ('part' in hashes) return hashes;
  const expiresAt = wholeNumber(value.expiresAt);
  if (expiresAt === null || expiresAt > MAX_UINT64) {
    return { part: 'expiresAt', reason: 'expected Unix seconds as a whole number' };
  }
  const chainId = isJsonObject(value.source) ? wholeNumber(value.source.chainId) : null;
  if (chainId === null || chainId < 1n || chainId > BigInt(Number.MAX_SAFE_INTEGER)) {
    return { part: 'source.chainId', reason: 'expected a chain id as a whole number from 1' };
  }
  const signature = hexOf(value.signature, 65);
  if (signature === null) {
    return { part: 'signature', reason: 'expected 0x and 130 hex digits (65 bytes)' };
  }
  const flaw = signatureFlaw(signature);
  if (flaw !== null) return { part: 'signature', reason: flaw };
  const sourceChainId = Number(chainId);
  return { quote: { id, intentHashes: hashes.hashes, expiresAt, sourceChainId, signature } };
}

/** `intentHash` and every `steps[].intents[].intentHash`. An unreadable step fails the read; it is not skipped. */
function signedHashes(quote: JsonObject): { hashes: Hex[] } | { part: QuotePart; reason: string } {
  const main = hexOf(quote.intentHash, 32);
  if (main === null) return { part: 'intentHash', reason: 'expected 0x and 64 hex digits' };
  const hashes = new Set([main]);
  const steps = quote.steps ?? [];
  if (!Array.isArray(steps)) return { part: 'steps', reason: 'expected a list of steps' };
  for (const [at, step] of steps.entries()) {
    const intents = isJsonObject(step) ? (step.intents ?? []) : null;
    if (!Array.isArray(intents)) return { part: 'steps', reason: `expected a list as steps[${at}].intents` };
    for (const [index, intent] of intents.entries()) {
      const hash = isJsonObject(intent) ? hexOf(intent.intentHash, 32) : null;
      if (hash === null) {
        const reason = `expected 0x and 64 hex digits as steps[${at}].intents[${index}].intentHash`;
        return { part: 'steps', reason };
      }
      hashes.add(hash);
    }
  }
  return { hashes: [...hashes].sort() };
}

/**
 * Recovery alone decides (interface, Quote signature). A signature with `s` in the upper half recovers the signer as
 * well. Nothing is identified by its signature, so several signatures of one quote do no harm.
 */
function signatureFlaw(signature: Hex): string | null {
  const end = signature.slice(-2);
  return RECOVERY_BYTES.includes(end) ? null : `its last byte is 0x${end}, expected 0x1b, 0x1c, 0x00 or 0x01`;
}

async function recoverSigner(quote: SignedQuote, { name, version }: QuoteDomain): Promise<string | null> {
  const { id, intentHashes, expiresAt, sourceChainId, signature } = quote;
  try {
    return await viem().recoverTypedDataAddress({
      domain: { name, version, chainId: sourceChainId },
      types: TYPES,
      primaryType: 'Quote',
      message: { id, intentHashes, expiresAt },
      signature,
    });
  } catch {
    // r or s is not a point of the curve.
    return null;
  }
}

/** Finds the changed field: a signature names none, but it may fit another chain or fewer intent hashes. */
async function findCause(
  quote: SignedQuote,
  {
    quoteSigner,
    domain,
    otherChains,
  }: { quoteSigner: string; domain: QuoteDomain; otherChains: readonly ChainSigner[] },
): Promise<{ part: QuotePart; reason: string } | null> {
  const signedBy = async (change: Partial<SignedQuote>, signer: string): Promise<boolean> => {
    const recovered = await recoverSigner({ ...quote, ...change }, domain);
    return recovered !== null && sameAddress(recovered, signer);
  };
  for (const { chainId, quoteSigner: signer } of otherChains.slice(0, MOST_OTHER_CHAINS)) {
    if (chainId === quote.sourceChainId || !(await signedBy({ sourceChainId: chainId }, signer))) continue;
    const reason = `found ${quote.sourceChainId}, but the quote was signed for chain ${chainId}`;
    return { part: 'source.chainId', reason };
  }
  if (quote.intentHashes.length === 1 || quote.intentHashes.length > MAX_SEARCHED_HASHES) return null;
  for (const added of quote.intentHashes) {
    const intentHashes = quote.intentHashes.filter((hash) => hash !== added);
    if (!(await signedBy({ intentHashes }, quoteSigner))) continue;
    return { part: 'steps', reason: `${added} is not among the intents that were signed` };
  }
  return null;
}

type OtherSigner = { quote: SignedQuote; recovered: string; quoteSigner: string; domain: QuoteDomain };

function unknownCause({ quote, recovered, quoteSigner, domain }: OtherSigner): {
  part: QuotePart;
  reason: string;
} {
  return {
    part: 'signature',
    reason:
      `signed by ${recovered}, expected ${quoteSigner} (chain ${quote.sourceChainId}): id, expiresAt, an intent hash, ` +
      'source.chainId or the signature was changed, another key signed, or upstream.quoteDomain ' +
      `(${JSON.stringify(domain.name)}) is wrong`,
  };
}

function unprovenDomain({ quote, recovered, quoteSigner, domain: { name, version } }: OtherSigner): {
  part: QuotePart;
  reason: string;
} {
  return {
    part: 'quoteDomain',
    reason:
      `set upstream.quoteDomain: no quote has verified under ${JSON.stringify(name)}, version ${JSON.stringify(version)} yet, and ` +
      `this deployment may have another name; found ${recovered} as the signer, expected ${quoteSigner} (chain ` +
      `${quote.sourceChainId})`,
  };
}

/** Hexadecimal text of so many bytes, in lower case: any letter case states the same, that of the prefix too. */
function hexOf(value: JsonValue | undefined, bytes: number): Hex | null {
  const folded = typeof value === 'string' ? foldHex(value) : '';
  return isHex(folded, bytes) ? folded : null;
}

function isHex(text: string, bytes: number): text is Hex {
  return text.length === 2 + 2 * bytes && /^0x[0-9a-f]+$/.test(text);
}

/** A number too large for JavaScript arrives as its digits. */
function wholeNumber(value: JsonValue | undefined): bigint | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : null;
  return typeof value === 'string' && /^\d{1,20}$/.test(value) ? BigInt(value) : null;
}

function sameAddress(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
