import { z } from 'zod';
import { canonicalJson, type JsonValue } from '../../domain/json.ts';
import { OPEN_EXECUTIONS, type RouteDefinition, USUAL_EXECUTIONS } from '../../domain/quotes/route.ts';
import { ROUTE_SERVICES } from '../../domain/subjects/subject.ts';
import { addressField } from '../fields/addresses.ts';
import { durationField, mapping, nameField, textField, wholeNumberField } from '../fields/fields.ts';
import { type ConfigPath, type Fault, items, member } from '../file/errors.ts';

const LEAST_SHARE = 0.000_001;

const shareError = `a share from ${LEAST_SHARE.toFixed(6)} to 1, such as 0.005 for 0.5 %`;

function endField(description: string) {
  return mapping({
    chainId: wholeNumberField({ min: 1, max: Number.MAX_SAFE_INTEGER }).meta({ description: 'The chain.' }),
    token: addressField('token').meta({ description: 'The token.', label: 'address' }),
  }).meta({ description });
}

export const routeSchema = mapping({
  name: nameField.meta({
    description:
      "The route's name, in event ids (`route:<name>`, with `service: v1` `route:v1:<name>`) and metrics. The same route wherever it is named.",
    label: 'name',
  }),
  source: endField('What is paid.'),
  destination: endField('What arrives.'),
  service: z.enum(ROUTE_SERVICES, { error: '"open" or "v1"' }).prefault('open').meta({
    description:
      'Which service is polled: `open`, the open quoting service, or `v1`, `POST /v1/quotes` with the key, for the prices that are tied to it. Both: two routes with names of their own.',
  }),
  executions: z
    .array(
      textField({
        pattern: /^[A-Za-z0-9._-]{1,64}$/,
        expected: 'the name of an execution: 1 to 64 letters, digits, dots, underscores and hyphens',
      }),
      { error: 'a list of names of executions' },
    )
    .min(1, { error: 'at least one name of an execution' })
    .optional()
    .meta({
      description:
        'Only quotes with one of these executions are prices of the route. `open`: `SELF_PUBLISH`, `GASLESS`; left out: `SELF_PUBLISH`. `v1`: the `type` of `execution.transaction`, as the service names it, in any case; left out: any.',
      label: 'list of names',
    }),
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
        'The share by which the output must differ from the one last reported to be reported again (`route.moved`): 0.005 is 0.5 %.',
    }),
  every: durationField({ min: '1s', max: '1h' }).prefault('30s').meta({
    description:
      'How often the service is polled. Less often where `quotesRequestsPerSecond`, or with `service: v1` `partnerQuotesRequestsPerSecond`, is too small for all its routes.',
    label: 'duration',
  }),
});

/** Builds a route from its parsed section. */
export function buildRoute({ every, executions, ...same }: z.output<typeof routeSchema>): RouteDefinition {
  const usual = same.service === 'open' ? USUAL_EXECUTIONS : [];
  return { ...same, executions: executions ?? usual, everyMs: every };
}

/**
 * Checks routes against each other and against the upstream. One name is one route, in all subscriptions. The open service is
 * requested only where its address is known, and for executions that it has. Reads the tree of the whole config.
 */
export function checkRoutes(tree: JsonValue): Fault[] {
  const routes = items(member(tree, 'subscriptions')).flatMap((subscription, index) =>
    items(member(subscription, 'routes')).map((route, place) => ({
      path: ['subscriptions', index, 'routes', place] satisfies ConfigPath,
      route,
    })),
  );
  const findings: Fault[] = [];
  const first = new Map<string, string>();
  for (const { path, route } of routes) {
    findings.push(...foreignExecutions(route, path));
    const parsed = routeSchema.safeParse(route);
    if (!parsed.success) continue;
    const { name } = parsed.data;
    const text = canonicalJson({ ...parsed.data, executions: parsed.data.executions ?? null });
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
  const hasOpenRoute = routes.some(({ route }) => isOpen(route));
  if (hasOpenRoute && upstream !== undefined && member(upstream, 'quotesUrl') === undefined) {
    findings.push({
      path: ['upstream'],
      found: 'no quotesUrl',
      expected:
        'the URL of the open quoting service as quotesUrl, for a subscription has routes that it prices',
    });
  }
  return findings;
}

function isOpen(route: JsonValue): boolean {
  return member(route, 'service') !== 'v1';
}

/** Executions that the open service does not have: it would refuse every request. */
function foreignExecutions(route: JsonValue, path: ConfigPath): Fault[] {
  if (!isOpen(route)) return [];
  return items(member(route, 'executions')).flatMap((name, index) =>
    typeof name !== 'string' || OPEN_EXECUTIONS.some((one) => one === name)
      ? []
      : [
          {
            path: [...path, 'executions', index],
            expected: `${OPEN_EXECUTIONS.join(' or ')}, or service: v1`,
          },
        ],
  );
}
