import { describe, expect, test } from 'vitest';
import { nextRoutePoll } from '../../src/domain/cadence/next-poll.ts';
import { decide } from '../../src/domain/changes/decide.ts';
import { nextSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import { canonicalJson, type JsonObject } from '../../src/domain/json.ts';
import {
  feeRatio,
  type RouteDefinition,
  type RouteQuote,
  readRoute,
  routeRecord,
} from '../../src/domain/quotes/route.ts';
import type { Snapshot } from '../../src/domain/subjects/record.ts';
import { quoteOf, ROUTE, USDC_BASE, USDC_OPTIMISM } from '../support/routes.ts';

const CONTEXT = { nowMs: 1_000, exact: true, history: false, confirmAfterMs: 600_000 };

/** The events of a series of answers, each as `type output (was previous)`. */
function show(
  answers: readonly (readonly RouteQuote[] | { definition: RouteDefinition; quotes: RouteQuote[] })[],
) {
  let snapshot: Snapshot | null = null;
  const events: string[] = [];
  for (const answer of answers) {
    const { definition, quotes } = 'definition' in answer ? answer : { definition: ROUTE, quotes: answer };
    const record = routeRecord(definition, quotes);
    const decision = decide(snapshot, record, CONTEXT);
    if (decision.outcome === 'stale' || decision.outcome === 'history') throw new Error(decision.outcome);
    const isEvent = decision.outcome !== 'unchanged';
    if (isEvent) {
      const { output, previousOutput } = decision.accepted.record;
      events.push(`${decision.transition.type} ${output} (was ${previousOutput})`);
    }
    if (decision.accepted === null) continue;
    const next = nextSnapshot(snapshot, decision.accepted, {
      subject: record.subject,
      nowMs: 1_000,
      event: isEvent,
    });
    snapshot = { ...next, commit: 0, reported: true };
  }
  return { events, snapshot };
}

const quotes = (...outputs: string[]): RouteQuote[] => outputs.map((output) => quoteOf(output));

describe('the events of a route', () => {
  test('report that it is available, that its price has moved, and that it is unavailable', () => {
    const { events } = show([
      quotes('99000000', '98000000'),
      quotes('99100000'),
      quotes('97000000'),
      [],
      [],
      quotes('97000000'),
    ]);
    expect(events).toEqual([
      'route.available 99000000 (was null)',
      'route.moved 97000000 (was 99000000)',
      'route.unavailable null (was 97000000)',
      'route.available 97000000 (was null)',
    ]);
  });

  test('begin with unavailable where no solver quotes', () => {
    expect(show([[]]).events).toEqual(['route.unavailable null (was null)']);
  });

  test('report a slow drift, compared with the last reported price and not with the last answer', () => {
    const { events } = show(
      ['100000000', '99600000', '99200000', '98999999', '98500000'].map((o) => quotes(o)),
    );
    expect(events).toEqual(['route.available 100000000 (was null)', 'route.moved 98999999 (was 100000000)']);
  });

  test('do not compare outputs of a token whose decimals are others now', () => {
    const token = '0x00000000000000000000000000000000000000f1';
    const definition = { ...ROUTE, destination: { chainId: 424242, token } };
    const answer = (output: string, decimals: number) => ({
      definition,
      quotes: [quoteOf(output, { fees: [{ amount: '1', token, decimals, symbol: null }] })],
    });
    const answers = [
      answer('99000000', 6),
      answer(`99${'0'.repeat(18)}`, 18),
      answer(`95${'0'.repeat(18)}`, 18),
    ];
    expect(show(answers).events).toEqual([
      'route.available 99000000 (was null)',
      `route.moved 95${'0'.repeat(18)} (was 99${'0'.repeat(18)})`,
    ]);
  });

  test('do not report a move of just the share', () => {
    expect(show([quotes('100000000'), quotes('99000000')]).events).toHaveLength(1);
    expect(show([quotes('100000000'), quotes('101000001')]).events).toHaveLength(2);
  });

  test('compare to the last digit amounts that no floating-point number distinguishes', () => {
    const least = { ...ROUTE, movedBy: 0.000001 };
    const at = (output: string) => ({ definition: least, quotes: quotes(output) });
    const first = at('1000000000000000000000000');
    expect(show([first, at('1000001000000000000000000')]).events).toHaveLength(1);
    expect(show([first, at('1000001000000000000000001')]).events).toHaveLength(2);
  });

  test('do not come of other ids, solvers, expiry times, fees and estimates', () => {
    const { events, snapshot } = show([
      [quoteOf('99000000', { id: 'quote:1' })],
      [quoteOf('99000000', { id: 'quote:2', solver: '0x02', fillEstimateSeconds: 90 })],
    ]);
    expect(events).toHaveLength(1);
    expect(readRoute(snapshot?.record ?? {})).toMatchObject({ fillEstimateSeconds: 90 });
  });

  test('report the route anew when the config gives its name another meaning', () => {
    const definition = { ...ROUTE, amount: '200000000' };
    const { events } = show([quotes('99000000'), { definition, quotes: quotes('99000001') }]);
    expect(events).toEqual(['route.available 99000000 (was null)', 'route.available 99000001 (was null)']);
  });

  test('obey a share that the config has changed, at the next answer', () => {
    const definition = { ...ROUTE, movedBy: 0.001 };
    const { events } = show([
      quotes('100000000'),
      quotes('99500000'),
      { definition, quotes: quotes('99500000') },
    ]);
    expect(events).toEqual(['route.available 100000000 (was null)', 'route.moved 99500000 (was 100000000)']);
  });

  test('name the changed facts, never the quote itself', () => {
    const { snapshot } = show([quotes('99000000')]);
    const decision = decide(snapshot, routeRecord(ROUTE, quotes('90000000')), CONTEXT);
    expect(decision).toMatchObject({
      outcome: 'changed',
      transition: { changes: ['output', 'outputPerInput'], status: 'available', previousStatus: 'available' },
    });
  });
});

describe('the record of a route', () => {
  const fee = (amount: string, token: string, decimals: number | null = 6) => ({
    amount,
    token,
    decimals,
    symbol: 'USDC',
  });

  test('takes the largest output, then the largest minimum, then the fastest', () => {
    const best = quoteOf('99000000', { id: 'quote:b', minimumOutput: '98000000', fillEstimateSeconds: 9 });
    const all = [
      quoteOf('98999999', { fillEstimateSeconds: 1 }),
      quoteOf('99000000', { minimumOutput: '97000000', fillEstimateSeconds: 1 }),
      best,
      quoteOf('99000000', { minimumOutput: '98000000', fillEstimateSeconds: 10 }),
    ];
    expect(routeRecord(ROUTE, all).raw.quote).toMatchObject({ quoteID: 'quote:b' });
    expect(routeRecord(ROUTE, all).raw).toMatchObject({ minimumOutput: '98000000', fillEstimateSeconds: 9 });
  });

  test('counts solvers, each once, and quotes without one as one each', () => {
    const all = ['0xAB', '0xab', '0x02', null, null].map((solver) => quoteOf('99000000', { solver }));
    expect(routeRecord(ROUTE, all).raw.solvers).toBe(4);
  });

  test('sums fees per token, and states their share of the amount', () => {
    const fees = [
      fee('20000', USDC_BASE),
      fee('30000', USDC_BASE.toUpperCase().replace('0X', '0x')),
      fee('99', '0x07'),
    ];
    const { raw } = routeRecord(ROUTE, [
      quoteOf('50000000', { fees: [...fees, fee('500000', USDC_OPTIMISM)] }),
    ]);
    const route = readRoute(raw);
    expect(route?.fees.map(({ token, amount }) => [token, amount])).toEqual([
      ['0x07', '99'],
      [USDC_OPTIMISM, '500000'],
      [USDC_BASE, '50000'],
    ]);
    expect(route && feeRatio(route)).toBeCloseTo(0.0005 + 0.01, 12);
  });

  test('gives the output for one input in token units, also where decimals differ', () => {
    const bnb = {
      ...ROUTE,
      destination: { chainId: 56, token: '0x8ac76a51cc950d9822d68b83fe1ad97b32cd580d' },
    };
    expect(routeRecord(bnb, quotes('99870000000000000000')).raw.outputPerInput).toBe('0.9987');
    expect(routeRecord(ROUTE, quotes('100000000')).raw.outputPerInput).toBe('1');
    expect(routeRecord({ ...ROUTE, amount: '3' }, quotes('1')).raw.outputPerInput).toBe('0.333333333333');
  });

  test('omits fees that are no amount together', () => {
    const fees = [fee('9'.repeat(78), USDC_BASE), fee('1', USDC_BASE), fee('7', USDC_OPTIMISM)];
    const answer = [quoteOf('50000000', { fees })];
    expect(readRoute(routeRecord(ROUTE, answer).raw)?.fees.map(({ amount }) => amount)).toEqual(['7']);
    expect(show([answer]).events).toEqual(['route.available 50000000 (was null)']);
  });

  test('takes decimals of an unknown token from fees that agree, and else counts in base units', () => {
    const token = '0x00000000000000000000000000000000000000aa';
    const definition = { ...ROUTE, source: { chainId: 8453, token } };
    const ratioWith = (...decimals: number[]) =>
      routeRecord(
        definition,
        decimals.map((one) => quoteOf('50', { fees: [fee('1', token, one)] })),
      ).raw.outputPerInput;
    expect(ratioWith(8)).toBe('0.00005');
    expect(ratioWith(8, 18)).toBe('0.0000005');
  });

  test('omits encodedRoute, and a quote that is long even so', () => {
    const long = quoteOf('99000000');
    const raw: JsonObject = { ...long.raw, note: 'x'.repeat(15_000) };
    const { quote } = routeRecord(ROUTE, [long]).raw;
    expect(canonicalJson(quote ?? null)).toBe(
      '{"quoteData":{"quoteResponse":{"destinationAmount":"99000000"}},"quoteID":"quote:99000000"}',
    );
    expect(routeRecord(ROUTE, [{ ...long, raw }]).raw).toMatchObject({ quote: null, output: '99000000' });
  });

  test('stays below 20 kB for any answer of a solver', () => {
    const fees = Array.from({ length: 5_000 }, (_, index) =>
      fee('1', `0x${index.toString(16)}`.padEnd(99, '0')),
    );
    const raw = { quoteID: 'q', quoteData: { quoteResponse: { x: 'y'.repeat(11_800) } } };
    const record = routeRecord(ROUTE, [
      quoteOf('9'.repeat(78), { fees, raw, minimumOutput: '8'.repeat(5_000) }),
    ]);
    expect(canonicalJson(record.raw).length).toBeLessThan(18_000);
  });

  test('of another kind is none of a route', () => {
    expect(readRoute({ id: 'intent:0x', type: 'intent', status: 'pending' })).toBeNull();
  });
});

test('a route is requested after its own interval, never sooner, and is overdue a second later', () => {
  expect(nextRoutePoll({ everyMs: 30_000 })).toEqual({
    virtualSeconds: 30,
    restMs: 30_000,
    latestMs: 31_000,
    alarmMs: null,
    unseen: false,
  });
});
