import { accepting, instead } from '../breakage.ts';
import { bodyOf, requestOpenly } from '../call.ts';
import { holds, list, same } from '../expectation.ts';
import { OPEN_QUOTES, openRequest } from '../open-quoting.ts';
import { changed } from '../quoting.ts';
import { inSection, type Rule } from '../rule.ts';

export const OPEN_ENDPOINT_RULES: readonly Rule[] = inSection(
  'POST /api/v3/quotes/exactIn',
  [
    {
      id: 'exactIn: 201',
      title: 'a route that solvers serve',
      check: async (target) => {
        const data = list(bodyOf(await requestOpenly(target, openRequest(target)), 201), 'data');
        holds(data.length > 0, 'found no quotes');
      },
      breakage: instead({ path: OPEN_QUOTES, status: 201 }, { body: { data: [] } }),
    },
    {
      id: 'exactIn: 400',
      title: 'a field that is invalid',
      check: async (target) => {
        bodyOf(
          await requestOpenly(target, changed(openRequest(target), 'quoteRequest.sourceAmount', 1.5)),
          400,
        );
      },
      breakage: accepting({ path: OPEN_QUOTES, status: 400 }, { data: [] }),
    },
    {
      id: 'exactIn: 429',
      title: 'too many requests',
      stage: { failing: 'rate-limit-exceeded' },
      check: async (target) => {
        same((await requestOpenly(target, openRequest(target))).status, 429, 'HTTP status');
      },
      breakage: instead({ path: OPEN_QUOTES }, { status: 400 }),
    },
    {
      id: 'exactIn: 5xx',
      title: 'a service that fails',
      stage: { failing: 'internal-error' },
      check: async (target) => {
        const { status } = await requestOpenly(target, openRequest(target));
        holds(status >= 500 && status <= 599, `found ${status}, expected 5xx`);
      },
      breakage: instead({ path: OPEN_QUOTES }, { status: 400 }),
    },
  ],
  { needs: ['quotesUrl'] },
);
