import { z } from 'zod';
import { canonicalJson, type JsonValue } from '../../domain/json.ts';
import type { RouteDefinition } from '../../domain/quotes/route.ts';
import { addressField } from '../fields/addresses.ts';
import { durationField } from '../fields/duration.ts';
import { mapping, nameField, textField, wholeNumberField } from '../fields/fields.ts';
import type { ConfigPath } from '../file/errors.ts';
import { type Finding, items, member } from '../file/tree.ts';

const LEAST_SHARE = 0.000_001;

const shareError = `a share from ${LEAST_SHARE.toFixed(6)} to 1, such as 0.005 for 0.5 %`;

function endField(description: string) {
  return mapping({
    chainId: wholeNumberField({ min: 1, max: Number.MAX_SAFE_INTEGER }).meta({ description: 'The chain.' }),
    token: addressField('token').meta({ description: 'The token.', label: 'address' }),
  }).meta({ description });
}

/** One item of a subscription's `routes`. */
export const routeSchema = mapping({
  name: nameField.meta({
    description:
      "The route's name, in event ids (`route:<name>`) and metrics. The same route wherever it is named.",
    label: 'name',
  }),
  source: endField('What is paid.'),
  destination: endField('What arrives.'),
  amount: textField({
    pattern: /^[1-9]\d{0,77}$/,
    expected: 'an amount in base units, digits in quotes like "100000000"',
  }).meta({ description: 'How much is paid, in base units.', label: 'digits' }),
  funder: addressField('wallet').meta({ description: 'Who pays.', label: 'address' }),
  recipient: addressField('wallet').meta({ description: 'Who is paid.', label: 'address' }),
  movedBy: z
    .number({ error: shareError })
    .min(LEAST_SHARE, { error: shareError })
    .max(1, { error: shareError })
    .prefault(0.005)
    .meta({
      description:
        'The share by which the output must differ from the one last told to be told again (`route.moved`): 0.005 is 0.5 %.',
    }),
  every: durationField({ min: '1s', max: '1h' }).prefault('30s').meta({
    description:
      'How often the quoting service is asked. Less often where `quotesRequestsPerSecond` is too small for all routes.',
    label: 'duration',
  }),
});

/** A route as the rest of the program sees it. */
export function buildRoute({ every, ...same }: z.output<typeof routeSchema>): RouteDefinition {
  return { ...same, everyMs: every };
}

/**
 * What routes say about each other and about the upstream: one name is one route, in whichever subscriptions it
 * stands, and none can be watched without the address of the quoting service. Reads the tree of the whole config.
 */
export function checkRoutes(tree: JsonValue): Finding[] {
  const routes = items(member(tree, 'subscriptions')).flatMap((subscription, index) =>
    items(member(subscription, 'routes')).map((route, place) => ({
      path: ['subscriptions', index, 'routes', place] satisfies ConfigPath,
      route,
    })),
  );
  const findings: Finding[] = [];
  const first = new Map<string, string>();
  for (const { path, route } of routes) {
    const parsed = routeSchema.safeParse(route);
    if (!parsed.success) continue;
    const { name } = parsed.data;
    const text = canonicalJson(parsed.data);
    if ((first.get(name) ?? text) !== text) {
      findings.push({
        path: [...path, 'name'],
        expected: 'the definition that this name has above, or another name',
        repeated: true,
      });
    }
    if (!first.has(name)) first.set(name, text);
  }
  const upstream = member(tree, 'upstream');
  if (routes.length > 0 && upstream !== undefined && member(upstream, 'quotesUrl') === undefined) {
    findings.push({
      path: ['upstream'],
      found: 'no quotesUrl',
      expected: 'the URL of the open quoting service as quotesUrl, for a subscription has routes',
    });
  }
  return findings;
}
