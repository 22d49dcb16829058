import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { VERSION } from '../../version.ts';
import { type ApiRoute, acceptsIdempotencyKey, defineRoute, NO_INPUT, type Scope } from './route.ts';
import { PROBLEM } from './shapes.ts';

const USUAL: Readonly<Record<number, string>> = {
  400: 'Something in the request is not as expected; `errors` lists each place.',
  401: 'There is no token of the config in the request.',
  403: 'The token may not do this; without tokens: the request does not come from this machine.',
  404: 'There is no such thing.',
  429: 'Too many failed logins, idempotency keys, or streams of one token and address.',
  503: 'The state is unknown now: the daemon has not started, or Redis is away.',
};

const WITH_BODY: Readonly<Record<number, string>> = {
  413: 'The body is longer than 256 KiB.',
  415: 'The body is no JSON.',
};

const WITH_KEY: Readonly<Record<number, string>> = {
  422: 'This `Idempotency-Key` was used for another request.',
};

const GROUPS = {
  subjects: 'What is watched, and what happened to it.',
  corridors: 'How long transfers take between two chains, and how they end.',
  events: 'What was reported, to be read, pulled or followed.',
  deliveries: 'What was and was not delivered, and sending it again.',
  receivers: 'Who is notified, and how they are.',
  config: 'The config that runs, and its reload.',
  document: 'This description.',
} as const;

/** The OpenAPI 3.1 document of some routes. */
export function documentOf(routes: readonly ApiRoute[]): JsonObject {
  const shared: JsonObject = {};
  const paths: { [path: string]: JsonObject } = {};
  for (const route of routes) {
    const path = paths[route.path] ?? {};
    paths[route.path] = path;
    path[route.method.toLowerCase()] = operationOf(route, shared);
  }
  const problem = schemaOf(PROBLEM, { io: 'output', shared });
  return {
    openapi: '3.1.1',
    info: {
      title: 'Intentwatch',
      version: VERSION,
      summary: 'See what is watched, what was reported and what was not delivered, and act on it.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/api/v1' }],
    security: [{ token: [] }],
    tags: Object.entries(GROUPS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: shared,
      responses: {
        Problem: { description: 'A problem.', content: { 'application/problem+json': { schema: problem } } },
      },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            '`server.token` or `server.tokens.admin` for all, `server.tokens.consume` to read and to move, create and delete consumers, `server.tokens.read` to read. Without a token in the config, the API is on only where `server.host` is a loopback address, and needs none.',
        },
      },
    },
  };
}

/** The token that a route needs, by right; undefined where each token is enough. */
export const NEEDED: Readonly<Record<Scope, string | undefined>> = {
  read: undefined,
  consume: 'Needs `server.tokens.consume` or an admin token.',
  admin: 'Needs an admin token.',
};

type Sharing = { io: 'input' | 'output'; shared: JsonObject };

function operationOf(route: ApiRoute, shared: JsonObject): JsonObject {
  const { operation, group, summary, description, scope, answers, takesBody, acceptsLink } = route;
  const inputs: Sharing = { io: 'input', shared };
  const about = [description, NEEDED[scope]].filter((text) => text !== undefined);
  const responses = Object.entries(answers).map(
    ([status, { description, schema, contentType }]): [string, JsonValue] => [
      status,
      {
        description,
        content: {
          [contentType ?? 'application/json']: { schema: schemaOf(schema, { io: 'output', shared }) },
        },
      },
    ],
  );
  return {
    operationId: operation,
    tags: [group],
    summary,
    ...(about.length === 0 ? {} : { description: about.join('\n\n') }),
    ...(acceptsLink === true ? { security: [{ token: [] }, {}] } : {}),
    parameters: [
      ...parametersOf('path', schemaOf(route.params, inputs)),
      ...parametersOf('query', schemaOf(route.query, inputs)),
      ...(acceptsIdempotencyKey(route) ? [IDEMPOTENCY_PARAMETER] : []),
    ],
    ...(takesBody
      ? {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: schemaOf(route.body, inputs) } },
          },
        }
      : {}),
    responses: Object.fromEntries([...responses, ...Object.entries(problemsOf(route))]),
  };
}

const IDEMPOTENCY_PARAMETER: JsonObject = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Names the request, with 1 to 200 visible ASCII characters. The same request with the same key within 24 hours is done once, and answered the same.',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
};

function problemsOf(route: ApiRoute): JsonObject {
  const all = {
    ...USUAL,
    ...(route.takesBody ? WITH_BODY : {}),
    ...(acceptsIdempotencyKey(route) ? WITH_KEY : {}),
    ...route.problems,
    ...(acceptsIdempotencyKey(route) ? { 409: conflictOf(route) } : {}),
  };
  return Object.fromEntries(
    Object.entries(all).map(([status, description]) => [
      status,
      {
        description,
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );
}

function conflictOf({ problems }: ApiRoute): string {
  const underWay = 'A request with this `Idempotency-Key` is under way';
  const own = problems?.[409];
  return own === undefined
    ? `${underWay}.`
    : `${own} Or: ${underWay.charAt(0).toLowerCase()}${underWay.slice(1)}.`;
}

function parametersOf(place: 'path' | 'query', schema: JsonObject): JsonObject[] {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(objectOf(schema.properties)).map(([name, property]) => {
    const { description, ...rest } = objectOf(property);
    // An empty list is omitted.
    const isRequired = place === 'path' || (required.includes(name) && rest.type !== 'array');
    return {
      name,
      in: place,
      required: isRequired,
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

/** A shape as JSON Schema. A shape with an `id` is described once, for all routes. */
function schemaOf(schema: z.ZodType, { io, shared }: Sharing): JsonObject {
  const {
    $schema: _,
    $defs,
    ...own
  } = objectOf(parsed(z.toJSONSchema(schema, { io, target: 'draft-2020-12', unrepresentable: 'any' })));
  for (const [name, definition] of Object.entries(objectOf($defs))) shared[name] = definition;
  const { id, ...rest } = own;
  if (typeof id !== 'string') return own;
  shared[id] = rest;
  return { $ref: `#/components/schemas/${id}` };
}

/** As JSON; references to shared shapes point to their place in the document. */
function parsed(schema: object): JsonValue {
  return z.json().parse(JSON.parse(JSON.stringify(schema).replaceAll('#/$defs/', '#/components/schemas/')));
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

/** Cached: building it takes as long as hundreds of other requests. */
const documents = new WeakMap<readonly ApiRoute[], ReturnType<typeof documentOf>>();

function cachedDocumentOf(routes: readonly ApiRoute[]): ReturnType<typeof documentOf> {
  const cached = documents.get(routes);
  if (cached !== undefined) return cached;
  const document = documentOf(routes);
  documents.set(routes, document);
  return document;
}

export const readDocument = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/openapi.json',
  operation: 'readDocument',
  group: 'document',
  summary: 'Read this description',
  scope: 'read',
  answers: {
    200: {
      description: 'The OpenAPI 3.1 document.',
      schema: z.record(z.string(), z.json()).meta({ id: 'Document' }),
    },
  },
  handle: async (_input, { routes }) => ({ status: 200, body: cachedDocumentOf(routes) }),
});
