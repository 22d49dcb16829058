import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { type CannedServer, cannedServer, type SeenRequest } from '../support/canned-server.ts';
import { PRICE_REQUEST, ProbeStage } from '../support/probe-stage.ts';

/** Generated answers in all, and of one probe. */
const ANSWERS = 1_000;
const ANSWERS_OF_A_PROBE = 16;

const KEY = 'sk_live_Zq7';
const [HOST, QUOTES] = ['localhost', 'zebralabs'];
const [PREFIX, BASE, DOMAIN] = ['quagga-vaults', 'okapibase', 'QuaggaQuoteV1'];
const [WALLET, INTENT] = [`0x${'c0ffee12'.repeat(5)}`, `0x${'5eedbead'.repeat(8)}`];

/** A name that is printed, whatever else there is. */
const BENIGN = 'memoText';

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const HEX = '0123456789abcdef';
const textOf = (characters: string, length: number | { minLength: number; maxLength: number }) =>
  fc.string({
    unit: fc.constantFrom(...characters),
    ...(typeof length === 'number' ? { minLength: length, maxLength: length } : length),
  });
const letters = textOf('abcdefghijklmnopqrstuvwxyz', { minLength: 6, maxLength: 10 });

/** Texts that must not be in a report: addresses of all families, hashes, hosts, UUIDs, keys, amounts, words of the settings. */
const secret: fc.Arbitrary<string> = fc.oneof(
  textOf(HEX, 40).map((hex) => `0x${hex}`),
  textOf(HEX, 40).map((hex) => hex.toUpperCase()),
  textOf(HEX, 64).map((hex) => `0x${hex}`),
  textOf('abcdefABCDEF', { minLength: 8, maxLength: 20 }),
  textOf(BASE58, { minLength: 32, maxLength: 44 }),
  textOf(BASE58, 33).map((text) => `T${text}`),
  fc.uuid(),
  fc.uuid().map((uuid) => `_${uuid.replaceAll('-', '')}`.slice(0, 30)),
  fc.uuid().map((uuid) => uuid.replaceAll('-', '_')),
  fc.tuple(letters, letters).map(([label, domain]) => `${label}.${domain}.io`),
  textOf(`${BASE58}_-`, { minLength: 31, maxLength: 60 }).map((text) => `sk_${text}`),
  textOf('123456789', { minLength: 9, maxLength: 30 }),
  fc.constantFrom(
    KEY,
    KEY.toUpperCase(),
    KEY.replaceAll('_', ''),
    `x_${KEY}`,
    HOST,
    'localhostId',
    QUOTES,
    'zebraLabsId',
  ),
  fc.constantFrom(PREFIX, 'quaggaVaults', 'Quagga_vault', BASE, DOMAIN, 'quaggaquote', WALLET, INTENT),
);

const word = letters.map((text) => `${text}zq`);

/** A value that is or has secrets; as a name too. */
const hostile: fc.Arbitrary<JsonValue> = fc.oneof(
  secret,
  fc.tuple(secret, secret).map(([name, value]): JsonValue => ({ [name]: value, [BENIGN]: value })),
  fc.array(secret, { maxLength: 2 }),
);

const failure = fc.record({
  status: fc.constantFrom(301, 400, 401, 403, 404, 422, 500, 503),
  code: fc.oneof(secret, word),
  text: secret,
});

/** One answer: the record's hostile members, its status word, and for some an error in place of the record. */
const generated = fc.record({
  members: fc.array(fc.tuple(secret, hostile), { minLength: 1, maxLength: 4 }),
  replaced: fc.array(fc.tuple(fc.nat(20), hostile), { maxLength: 2 }),
  word: fc.oneof(fc.constantFrom('pending', 'FILLED', 'Published'), word, secret),
  error: fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: failure }),
  cursor: fc.option(secret, { nil: null }),
});

type Generated = typeof generated extends fc.Arbitrary<infer T> ? T : never;

const side = { token: 'token', amount: '1', chainId: 8453 };

/** A valid record of the requested endpoint, by its path. */
function recordAt(url: string): JsonObject {
  if (url.includes('/v1/intents/status')) {
    const steps = [{ type: 'BRIDGE', intentHash: 'h', status: 's', from: side, to: side, transactions: {} }];
    return { id: 'intent:1', type: 'intent', status: '', updatedAt: 1_763_638_259, txHash: null, steps };
  }
  if (url.includes('/v1/quotes')) {
    const fees = [{ type: 'solver', token: { address: 'a', decimals: 6 }, amount: '1' }];
    const core = { id: 'quote:1', signature: 's', expiresAt: 4_102_444_800, intentHash: 'h' };
    return { ...core, source: { chainId: 8453 }, destination: { chainId: 10 }, fees };
  }
  if (url.includes('/quotes/exactIn')) {
    return { quoteID: 'q', solverID: 's', quoteData: { quoteResponse: { destinationAmount: '1' } } };
  }
  if (url.includes('/chains') || url.includes('/tokens'))
    return { chainId: 8453, address: 'a', name: 'Base' };
  return { id: 'job', status: '', state: '', vaultAddress: 'v', sourceChainId: 1 };
}

/** The answer to a request: the record with its hostile members and values, in the envelope of its endpoint. */
function answerTo({ url }: SeenRequest, { members, replaced, word: status, error, cursor }: Generated) {
  if (error !== null) {
    const { code, text } = error;
    const body = { code, message: text, detail: text, errors: [{ field: text, detail: text }], [text]: text };
    return { status: error.status, body };
  }
  const record = recordAt(url);
  const names = Object.keys(record);
  const changed: JsonObject = {
    ...record,
    ...('status' in record ? { status } : {}),
    ...('state' in record ? { state: status } : {}),
    ...Object.fromEntries(members),
    ...Object.fromEntries(replaced.map(([at, value]) => [names[at % names.length] ?? '', value])),
    [BENIGN]: 'x',
  };
  if (url.includes('/v1/intents/status')) {
    return {
      status: 200,
      body: { results: [changed, record], nextCursor: cursor, ...Object.fromEntries(members) },
    };
  }
  if (url.includes('/quotes/exactIn')) return { status: 201, body: { data: [changed] } };
  if (url.includes('/intentStatus')) {
    // A status may be the name of a member, too.
    return { status: 200, body: { data: { ...changed, status: { Pending: { [status]: true } } } } };
  }
  if (url.includes('/v1/quotes')) return { status: 200, body: { ...changed, quotes: [changed] } };
  if (url.includes('/chains') || url.includes('/tokens')) return { status: 200, body: { data: [changed] } };
  return { status: 200, body: { data: changed } };
}

/** All texts of a value: its names and its leaves. */
function textsOf(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(textsOf);
  if (typeof value !== 'object' || value === null) return [String(value)];
  return Object.entries(value).flatMap(([name, inner]) => [name, ...textsOf(inner)]);
}

/** Own texts, and words of the tables. */
const PRINTED = new Set([BENIGN, 'pending', 'FILLED', 'Published']);

let stage: ProbeStage;
let server: CannedServer;
let answers: readonly Generated[] = [];
let sent = 0;

beforeAll(async () => {
  stage = await ProbeStage.start();
  server = await cannedServer((request) => {
    const answer = answers[sent % answers.length];
    sent += 1;
    if (answer === undefined) throw new Error('a probe has answers');
    return answerTo(request, answer);
  });
});
afterAll(async () => {
  await server.close();
  await stage.close();
});

test('a report of any answers has no key, host, path word, address, hash, amount or error text', async () => {
  const price = await stage.file('price.json', PRICE_REQUEST);
  let [hidden, shown] = [0, 0];
  const oneProbe = fc.array(generated, { minLength: ANSWERS_OF_A_PROBE, maxLength: ANSWERS_OF_A_PROBE });
  await fc.assert(
    fc.asyncProperty(oneProbe, async (drawn) => {
      answers = drawn;
      const { out, report } = await stage.probe(
        {
          upstream: {
            baseUrl: `${server.url.replace('127.0.0.1', HOST)}/${BASE}`,
            quotesUrl: `${server.url}/${QUOTES}`,
            apiKey: KEY,
            gateway: { prefix: PREFIX },
            quoteDomain: { name: DOMAIN },
          },
          subjects: { wallets: [WALLET], intents: [INTENT] },
        },
        ['--quote', price, '--quote-domain', `${DOMAIN}Old`],
      );
      const texts = drawn.flatMap(({ members, replaced, word: status, error, cursor }) => [
        ...members.flatMap(([name, value]) => [name, ...textsOf(value)]),
        ...replaced.flatMap(([, value]) => textsOf(value)),
        ...[status, error?.code, error?.text, cursor].flatMap((text) => text ?? []),
      ]);
      const all = [...texts, KEY, HOST, QUOTES, PREFIX, 'quagga', BASE, DOMAIN, WALLET, INTENT, server.url];
      const printed = `${out}\n${JSON.stringify(report)}`.toLowerCase();
      const found = all.filter((text) => !PRINTED.has(text) && printed.includes(text.toLowerCase()));
      expect(found, printed).toEqual([]);
      expect(printed).not.toMatch(/[0-9a-f]{8}|\b\d{7,}\b|\b[1-9A-HJ-NP-Za-km-z]{31,}\b|127\.0\.0\.1/i);
      shown += printed.split(BENIGN.toLowerCase()).length - 1;
      hidden += printed.split('<name>').length - 1;
    }),
    { numRuns: Math.ceil(ANSWERS / ANSWERS_OF_A_PROBE), endOnFailure: true },
  );
  expect(sent).toBeGreaterThanOrEqual(ANSWERS);
  expect(hidden).toBeGreaterThan(ANSWERS);
  expect(shown).toBeGreaterThan(ANSWERS);
});
