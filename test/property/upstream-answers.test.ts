import { once } from 'node:events';
import { createServer } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isJsonObject, type JsonValue } from '../../src/domain/json.ts';
import { Secret } from '../../src/secret.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { UpstreamFailure } from '../../src/upstream/client/failure.ts';
import type { StatusPage } from '../../src/upstream/wire/status-page.ts';

const side = { token: '0xusdc', amount: '1000000', chainId: 8453 };
const transaction = { chainId: 8453, txHash: '0x01' };
const VALID: JsonValue = {
  results: [
    {
      id: 'intent:0x1',
      type: 'intent',
      status: 'filled',
      updatedAt: 1763638259,
      txHash: null,
      sourceTx: { ...transaction, token: '0xusdc', amount: '1000000' },
      steps: [
        {
          type: 'BRIDGE',
          intentHash: '0x2',
          status: 'FULFILLED',
          from: side,
          to: side,
          transactions: { created: transaction },
        },
      ],
    },
    {
      id: 'gasless:u',
      type: 'gasless',
      status: 'published',
      updatedAt: null,
      intentHashes: ['0x3'],
      subStatuses: [
        { chainId: 1, quoteIds: ['quote:u'], txHash: null, intentHashes: ['0x3'], state: 'pending' },
      ],
    },
    { id: 'quote:u', type: 'quote', status: 'active', updatedAt: 1763638000, steps: [] },
  ],
  nextCursor: 'next',
};

let answer = { status: 200, type: 'application/json', body: '' };
const server = createServer((_request, response) => {
  response.writeHead(answer.status, { 'content-type': answer.type }).end(answer.body);
});
let client: UpstreamClient;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  client = new UpstreamClient({
    baseUrl: `http://127.0.0.1:${address.port}`,
    apiKey: new Secret('sk-live-0123456789abcdef'),
    timeoutMs: 30_000,
    gateway: {
      prefix: 'deposit-gateway',
      vaultPath: '/vaults/{vaultAddress}',
      chainParam: 'chainId',
      jobPath: '/jobs/{id}',
    },
  });
});

afterAll(async () => {
  await client.close();
  await new Promise((resolve) => server.close(resolve));
});

/** The page, or the failure; any other error fails the test. */
async function requestPage(canned: typeof answer): Promise<StatusPage | UpstreamFailure> {
  answer = canned;
  try {
    return (await client.status({ wallet: '0x1' })).value;
  } catch (error) {
    if (error instanceof UpstreamFailure) return error;
    throw error;
  }
}

/** Walks to a place that the numbers choose and replaces, removes or adds there. */
type Mutation = {
  steps: number[];
  change: { set: JsonValue } | { remove: true } | { add: string; value: JsonValue };
};

function mutate(root: JsonValue, mutation: Mutation): JsonValue {
  const [step, ...rest] = mutation.steps;
  const keys = Object.keys(typeof root === 'object' && root !== null ? root : {});
  const { change } = mutation;
  if (step === undefined || keys.length === 0) {
    if ('add' in change && isJsonObject(root)) return { ...root, [change.add]: change.value };
    return 'set' in change ? change.set : root;
  }
  const key = keys[step % keys.length] ?? '';
  const last = rest.length === 0;
  if (Array.isArray(root)) {
    if (last && 'remove' in change) return root.filter((_item, index) => String(index) !== key);
    return root.map((item, index) => (String(index) === key ? mutate(item, { steps: rest, change }) : item));
  }
  if (!isJsonObject(root)) return root;
  if (last && 'remove' in change)
    return Object.fromEntries(Object.entries(root).filter(([name]) => name !== key));
  return { ...root, [key]: mutate(root[key] ?? null, { steps: rest, change }) };
}

const anyJson: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<JsonValue[]>(null, true, '', 'x', '0x9', 0, -1, 1.5, 1763638259, [], {}),
    fc.string(),
    fc.integer(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      tie('value'),
      { maxKeys: 3, noNullPrototype: true },
    ),
  ),
})).value;

const mutation: fc.Arbitrary<Mutation> = fc.record({
  steps: fc.array(fc.nat(20), { minLength: 1, maxLength: 6 }),
  change: fc.oneof(
    fc.record({ set: anyJson }),
    fc.constant({ remove: true as const }),
    fc.record({ add: fc.constantFrom('mood', 'id', 'steps', 'toString', 'constructor'), value: anyJson }),
  ),
});

const hasCore = (item: JsonValue): boolean =>
  isJsonObject(item) &&
  typeof item.id === 'string' &&
  item.id.length > 0 &&
  typeof item.type === 'string' &&
  typeof item.status === 'string' &&
  item.status.length > 0;

describe('any answer', () => {
  test('loses no record whose core is intact, for any damage around it', async () => {
    const seen = { pages: 0, refused: 0, partial: 0, unreadable: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 5 }), async (mutations) => {
        const sent: JsonValue = mutations.reduce<JsonValue>(mutate, VALID);
        const got = await requestPage({ status: 200, type: 'application/json', body: JSON.stringify(sent) });
        if (!isJsonObject(sent) || !Array.isArray(sent.results)) {
          seen.refused++;
          expect(got).toMatchObject({ name: 'UpstreamFailure', code: 'malformed' });
          return;
        }
        if (got instanceof UpstreamFailure) throw got;
        seen.pages++;
        const whole = sent.results.filter(hasCore);
        if (whole.length < sent.results.length) seen.partial++;
        if (got.records.some((record) => record.unreadable.length > 0)) seen.unreadable++;
        expect(got.records.map((record) => record.raw)).toEqual(whole);
        const badAt = sent.results.flatMap((item, index) => (hasCore(item) ? [] : [index]));
        expect(got.unreadable.map((item) => item.index).filter((index) => index >= 0)).toEqual(badAt);
      }),
      { numRuns: 2000 },
    );
    // The mutations reach every branch; otherwise the property would prove little.
    for (const [name, count] of Object.entries(seen)) expect(count, name).toBeGreaterThan(20);
  });

  test('whose bytes were cut or changed ends as a page or as a failure of the family', async () => {
    const text = JSON.stringify(VALID);
    const damage = fc.record({
      at: fc.nat(text.length),
      drop: fc.oneof(fc.nat(10), fc.constant(text.length)),
      insert: fc.oneof(
        fc.string(),
        fc.constantFrom('{', '[', '"', '\u0000', '<html>', '__proto__', '9'.repeat(400)),
      ),
      status: fc.constantFrom(200, 200, 200, 201, 400, 401, 403, 404, 429, 500, 503),
      type: fc.constantFrom('application/json', 'text/html'),
    });
    await fc.assert(
      fc.asyncProperty(damage, async ({ at, drop, insert, status, type }) => {
        const body = text.slice(0, at) + insert + text.slice(at + drop);
        const got = await requestPage({ status, type, body });
        if (status > 299) expect(got).toMatchObject({ name: 'UpstreamFailure', httpStatus: status });
        else if (got instanceof UpstreamFailure) {
          expect(got.code).toBe('malformed');
          expect(resultsIn(body)).toBeNull();
        } else {
          const unreadable = got.unreadable.filter((item) => item.index >= 0);
          expect(got.records.length + unreadable.length).toBe(resultsIn(body));
        }
      }),
      { numRuns: 500 },
    );
  });

  test('retains every digit of every number', async () => {
    const digits = fc.oneof(
      fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map(String),
      fc
        .tuple(fc.bigInt({ min: 0n, max: 10n ** 20n }), fc.stringMatching(/^[0-9]{1,30}$/))
        .map(([whole, fraction]) => `${whole}.${fraction}`),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(digits, { minLength: 1, maxLength: 20 }), async (numbers) => {
        const core = '"id":"intent:0x1","type":"intent","status":"filled","updatedAt":null';
        const body = `{"results":[{${core},"amounts":[${numbers.join(',')}]}],"nextCursor":null}`;
        const got = await requestPage({ status: 200, type: 'application/json', body });
        if (got instanceof UpstreamFailure) throw got;
        const amounts = got.records[0]?.raw.amounts;
        expect(Array.isArray(amounts) ? amounts.map(exactly) : amounts).toEqual(numbers.map(exactly));
      }),
      { numRuns: 500 },
    );
  });
});

/** Number of results in a body; null when it is no page. */
function resultsIn(body: string): number | null {
  try {
    const sent: JsonValue = JSON.parse(body);
    return isJsonObject(sent) && Array.isArray(sent.results) ? sent.results.length : null;
  } catch {
    return null;
  }
}

/** A plain decimal number without insignificant zeros. */
function exactly(value: JsonValue): string {
  const text = typeof value === 'number' && Math.abs(value) < 1e-6 ? value.toFixed(100) : String(value);
  return text.includes('.') ? text.replace(/0+$/, '').replace(/\.$/, '') : text;
}
