import { z } from 'zod';
import { member } from '../breakage.ts';
import { bodyOf, call } from '../call.ts';
import { conforms, holds, read } from '../expectation.ts';
import { memberRules } from '../member-rules.ts';
import { changed, quoteRequest, requestQuote, requestStatus } from '../quoting.ts';
import { inSection, type Rule, type Target } from '../rule.ts';
import { nonEmpty } from '../shape.ts';

const on = { path: /^\/v1\// };

/** Problems of three kinds: of the status endpoint, of a field, of every solver. */
async function problems(target: Target): Promise<unknown[]> {
  const body = quoteRequest(target);
  return [
    bodyOf(await requestStatus(target, {}), 400),
    bodyOf(await requestQuote(target, changed(body, 'dappId', undefined)), 400),
    bodyOf(await requestQuote(target, changed(body, 'source.chainId', 999_999_937)), 422),
  ];
}

export const PROBLEM_RULES: readonly Rule[] = inSection('Problem', [
  ...memberRules({
    prefix: 'problem',
    records: problems,
    on,
    place: '',
    rows: [
      {
        name: 'type',
        title: 'is a URI that ends in /v1/errors/<code>, and never missing',
        schema: z.url().regex(/\/v1\/errors\/[a-z0-9-]+$/),
        required: true,
        broken: 'about:blank',
      },
      { name: 'title', title: 'is text, and never missing', schema: nonEmpty, required: true },
      {
        name: 'status',
        title: 'is an integer from 400 to 599, and never missing',
        schema: z.int().min(400).max(599),
        required: true,
        broken: String,
      },
      { name: 'code', title: 'is text, and never missing', schema: nonEmpty, required: true },
      { name: 'detail', title: 'is text where it is shown', schema: z.string() },
      { name: 'instance', title: 'is text where it is shown', schema: z.string() },
      { name: 'legacyCode', title: 'is text where it is shown', schema: z.string(), broken: 1001 },
      {
        name: 'solverErrors',
        title: 'lists solver, solverName, code and message where it is shown',
        schema: z.array(
          z.looseObject({
            solver: z.string(),
            solverName: nonEmpty.optional(),
            code: nonEmpty.optional(),
            message: z.string(),
          }),
        ),
        broken: [{ solverName: 'Nobody' }],
      },
      {
        name: 'errors',
        title: 'lists field and detail, both of at least a letter, where it is shown',
        schema: z.array(z.looseObject({ field: nonEmpty, detail: nonEmpty })),
        broken: [{ field: '', detail: 'wrong' }],
      },
      { name: 'requestId', title: 'is text where it is shown', schema: z.string(), broken: 7 },
    ],
  }),
  {
    id: 'problem: requestId a',
    title: 'errors of the deposit-address service carry a short number',
    check: async (target) => {
      const { body, text: reply } = await call(target, { path: '/v1/deposit-gateway/status', key: null });
      conforms(z.string().regex(/^\d{1,6}$/), read(body, 'requestId'), `requestId of ${reply.slice(0, 200)}`);
      target.tally?.shown(1);
    },
    breakage: member({ path: /^\/v1\/deposit-gateway/ }, '', 'requestId', 'a3f1-77c2'),
  },
  {
    id: 'problem: type a',
    title: 'is {base_url}/v1/errors/<code>, with the code beside it',
    check: async (target) => {
      for (const problem of await problems(target)) {
        const { host } = new URL(String(read(problem, 'type')));
        const ending = `/v1/errors/${String(read(problem, 'code'))}`;
        holds(host === new URL(target.baseUrl).host, `type: found the host ${host}`);
        holds(String(read(problem, 'type')).endsWith(ending), `type: expected it to end in ${ending}`);
      }
    },
    breakage: member(on, '', 'type', 'https://docs.example.com/v1/errors/invalid-request'),
  },
]);
