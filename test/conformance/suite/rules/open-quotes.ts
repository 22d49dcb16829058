import { z } from 'zod';
import { accepting, instead, member, sending } from '../breakage.ts';
import { bodyOf, requestOpenly } from '../call.ts';
import { conforms, holds, list, read, same } from '../expectation.ts';
import { memberRules } from '../member-rules.ts';
import { OPEN_QUOTES, openEntries, openQuotes, openRequest } from '../open-quoting.ts';
import { changed } from '../quoting.ts';
import { given, inSection, type Rule, type Target } from '../rule.ts';
import { anyAddress, baseUnits, chainId, evmAddress, nonEmpty, unixSeconds } from '../shape.ts';

const on = { path: OPEN_QUOTES, status: 201 };
const UUID = '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';

async function isRefused(target: Target, place: string, value: unknown): Promise<void> {
  const body = bodyOf(await requestOpenly(target, changed(openRequest(target), place, value)), 400);
  list(body, 'validationErrors');
}

function fieldRule(name: string, title: string, wrong: readonly unknown[]): Omit<Rule, 'section'> {
  return {
    id: `open request: quoteRequest.${name}`,
    title,
    check: async (target) => {
      const body = bodyOf(await requestOpenly(target, openRequest(target)), 201);
      holds(list(body, 'data').length > 0, 'found no quotes');
      for (const value of wrong) await isRefused(target, `quoteRequest.${name}`, value);
    },
    breakage: accepting({ path: OPEN_QUOTES, status: 400 }, { data: [] }),
  };
}

const NOT_ADDRESSES = [7, '0x123', 'nobody'];
const NOT_CHAINS = ['8453', 1.5];

const REQUEST_RULES = inSection(
  'Open quoting service: request',
  [
    {
      id: 'open request: dAppID',
      title: 'has letters, digits, dots, underscores, hyphens, and at most 64 characters',
      check: async (target) => {
        const longest = `aZ0._-${'1'.repeat(58)}`;
        bodyOf(await requestOpenly(target, changed(openRequest(target), 'dAppID', longest)), 201);
        for (const wrong of [`${longest}1`, 'a b', 'a/b', 7]) await isRefused(target, 'dAppID', wrong);
      },
      breakage: sending(OPEN_QUOTES, '', 'dAppID', 'conformance'),
    },
    {
      id: 'open request: intentExecutionTypes',
      title: 'allows SELF_PUBLISH and GASLESS',
      check: async (target) => {
        const kinds = (await openQuotes(target)).map((quote) => read(quote, 'intentExecutionType'));
        same([...new Set(kinds)].sort(), ['GASLESS', 'SELF_PUBLISH'], 'kinds of execution');
        await isRefused(target, 'intentExecutionTypes', ['SOMEHOW']);
        await isRefused(target, 'intentExecutionTypes', 'GASLESS');
      },
      breakage: sending(OPEN_QUOTES, '', 'intentExecutionTypes', ['GASLESS']),
    },
    {
      id: 'open request: quoteRequest',
      title: 'is an object',
      check: async (target) => {
        for (const wrong of ['a quote, please', []]) await isRefused(target, 'quoteRequest', wrong);
      },
      breakage: accepting({ path: OPEN_QUOTES, status: 400 }, { data: [] }),
    },
    fieldRule('sourceChainID', 'is an integer', NOT_CHAINS),
    fieldRule('destinationChainID', 'is an integer', NOT_CHAINS),
    fieldRule('sourceToken', 'is an address', NOT_ADDRESSES),
    fieldRule('destinationToken', 'is an address', NOT_ADDRESSES),
    fieldRule('sourceAmount', 'is base units as a decimal string', [100, '1.5', 'much']),
    fieldRule('funder', 'is an address', NOT_ADDRESSES),
    fieldRule('recipient', 'is an address', NOT_ADDRESSES),
    {
      id: 'open request: contract addresses',
      title: 'need not be given: there are default contracts',
      check: async (target) => {
        for (const entry of await openEntries(target)) {
          conforms(evmAddress, read(entry, 'quoteData.contracts.sourcePortal'), 'sourcePortal');
        }
      },
      breakage: instead(on, { status: 400, body: { statusCode: 400, validationErrors: [] } }),
    },
  ],
  { needs: ['quotesUrl'] },
);

const token = z.looseObject({ address: anyAddress, decimals: z.int(), symbol: nonEmpty });
const fee = z.looseObject({
  name: nonEmpty,
  description: z.string(),
  token,
  amount: baseUnits,
  kinds: z.array(z.looseObject({ kind: nonEmpty, amount: baseUnits, basis: nonEmpty })),
});
const required = true;
const ENTRY_ROWS = [
  {
    name: 'quoteID',
    title: 'is quote:<uuid>',
    schema: z.string().regex(new RegExp(`^quote:${UUID}$`)),
    required,
  },
  {
    name: 'quoteResponseID',
    title: 'is quoteResponse:<uuid>',
    schema: z.string().regex(new RegExp(`^quoteResponse:${UUID}$`)),
    required,
  },
  { name: 'solverID', title: 'is an address', schema: evmAddress, required },
  { name: 'quoteData.contracts.sourcePortal', title: 'is an address', schema: evmAddress, required },
  { name: 'quoteData.contracts.destinationPortal', title: 'is an address', schema: evmAddress, required },
  { name: 'quoteData.contracts.prover', title: 'is an address', schema: evmAddress, required },
] as const;
const QUOTE_ROWS = [
  {
    name: 'intentExecutionType',
    title: 'is SELF_PUBLISH or GASLESS',
    schema: z.enum(['SELF_PUBLISH', 'GASLESS']),
    required,
    shows: ['SELF_PUBLISH', 'GASLESS'],
    broken: 'gasless',
  },
  { name: 'sourceChainID', title: 'is an integer', schema: chainId, required },
  { name: 'destinationChainID', title: 'is an integer', schema: chainId, required },
  { name: 'finalDestinationChainID', title: 'is an integer', schema: chainId, required },
  { name: 'sourceToken', title: 'is an address', schema: anyAddress, required },
  { name: 'destinationToken', title: 'is an address', schema: anyAddress, required },
  { name: 'sourceAmount', title: 'is base units', schema: baseUnits, required, broken: Number },
  { name: 'destinationAmount', title: 'is base units', schema: baseUnits, required, broken: Number },
  { name: 'minimumDestinationAmount', title: 'is base units', schema: baseUnits, required, broken: Number },
  { name: 'funder', title: 'is an address', schema: anyAddress, required },
  { name: 'refundRecipient', title: 'is an address', schema: anyAddress, required },
  { name: 'recipient', title: 'is an address', schema: anyAddress, required },
  {
    name: 'fees',
    title: 'each have name, description, token, amount and kinds',
    schema: z.array(fee),
    required,
    broken: [{ name: 'fee', amount: '1' }],
  },
  { name: 'deadline', title: 'is Unix seconds', schema: unixSeconds, required, broken: String },
  { name: 'quoteExpiry', title: 'is Unix seconds', schema: unixSeconds, required, broken: String },
  {
    name: 'estimatedFulfillTimeSec',
    title: 'is whole seconds',
    schema: z.int().min(0),
    required,
    broken: String,
  },
  { name: 'encodedRoute', title: 'is hex', schema: z.string().regex(/^0x([0-9a-fA-F]{2})+$/), required },
] as const;

const RESPONSE_RULES = inSection(
  'Open quoting service: response',
  [
    {
      id: 'open response: status',
      title: 'is 201 with { data: [entry] }',
      check: async (target) => {
        const body = bodyOf(await requestOpenly(target, openRequest(target)), 201);
        conforms(z.looseObject({ data: z.array(z.looseObject({})).min(1) }), body, 'body');
      },
      breakage: instead(on, { status: 200 }),
    },
    {
      id: 'open response: empty data',
      title: 'means that no solver quoted the route, and is a success',
      check: async (target) => {
        const body = changed(openRequest(target), 'quoteRequest.sourceAmount', '1');
        same(list(bodyOf(await requestOpenly(target, body), 201), 'data'), [], 'data');
      },
      breakage: instead({ ...on, sent: /"sourceAmount":"1"/ }, { status: 404 }),
    },
    {
      id: 'open quote: finalDestinationChainID a',
      title: 'can differ from destinationChainID',
      needs: ['quotesUrl', 'tronRoute'],
      check: async (target) => {
        const { source, destination, amount } = given(target, 'tronRoute');
        const body = changed(openRequest(target), 'quoteRequest', {
          sourceChainID: source.chainId,
          destinationChainID: destination.chainId,
          sourceToken: source.token,
          destinationToken: destination.token,
          sourceAmount: amount,
          funder: source.funder,
          recipient: destination.recipient,
        });
        const quotes = list(bodyOf(await requestOpenly(target, body), 201), 'data').map((entry) =>
          read(entry, 'quoteData.quoteResponse'),
        );
        const over = quotes.filter(
          (quote) => read(quote, 'destinationChainID') !== read(quote, 'finalDestinationChainID'),
        );
        holds(over.length > 0, `found none of ${quotes.length} quotes that passes over another chain`);
        for (const quote of over) {
          same(read(quote, 'finalDestinationChainID'), destination.chainId, 'finalDestinationChainID');
        }
        target.tally?.shown(over.length);
      },
      breakage: member(
        on,
        'data.*.quoteData.quoteResponse',
        'destinationChainID',
        (_: unknown, quote: unknown) => read(quote, 'finalDestinationChainID'),
      ),
    },
    ...memberRules({ prefix: 'open entry', records: openEntries, on, place: 'data.*', rows: ENTRY_ROWS }),
    ...memberRules({
      prefix: 'open quote',
      records: openQuotes,
      on,
      place: 'data.*.quoteData.quoteResponse',
      rows: QUOTE_ROWS,
    }),
  ],
  { needs: ['quotesUrl'] },
);

export const OPEN_QUOTE_RULES: readonly Rule[] = [...REQUEST_RULES, ...RESPONSE_RULES];
