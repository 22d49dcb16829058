/** The generations of the deposit-vault paths: all that a client changes between them. */
export const VAULT_PATHS = {
  legacy: {
    create: '/{prefix}/v2/depositAddresses',
    vault: '/{prefix}/v2/depositAddresses/{id}',
    erc3009: '/{prefix}/v1/gasless/transferWithAuthorization',
    permit: '/{prefix}/v1/gasless/permit',
    job: '/{prefix}/v1/gasless/jobs/{id}',
  },
  current: {
    create: '/v1/{prefix}/deposit-addresses',
    vault: '/v1/{prefix}/{id}',
    erc3009: '/v1/{prefix}/submit/erc-3009',
    permit: '/v1/{prefix}/submit/erc-2612',
    job: '/v1/{prefix}/status?id={id}',
  },
} as const;

export type Generation = keyof typeof VAULT_PATHS;

/** A refusal, with the text that a client shows to its user. */
export class ServiceError extends Error {
  readonly status: number;
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    super(reasonIn(body) ?? `HTTP ${status}`);
    this.status = status;
    this.body = body;
  }
}

/** A client of the service as an application has one: fetch and JSON. It sends what it is given, and checks nothing. */
export class ServiceClient {
  readonly #baseUrl: string;
  readonly #quotesUrl: string;
  readonly #headers: Record<string, string>;
  readonly #prefix: string;

  constructor(options: { baseUrl: string; quotesUrl: string; apiKey: string | null; prefix: string }) {
    this.#baseUrl = options.baseUrl;
    this.#quotesUrl = options.quotesUrl;
    this.#headers = options.apiKey === null ? {} : { 'x-api-key': options.apiKey };
    this.#prefix = options.prefix;
  }

  /** A request of the keyed v1 API. */
  v1(path: string, body?: unknown): Promise<unknown> {
    return request(`${this.#baseUrl}/v1${path}`, { headers: this.#headers, body });
  }

  /** A request of the deposit-vault endpoints; `query` follows what the path has. Without a key, as browsers send it. */
  gateway(template: string, { id = '', query = {}, body }: GatewayRequest = {}): Promise<unknown> {
    const path = template.replace('{prefix}', this.#prefix).replace('{id}', encodeURIComponent(id));
    const url = new URL(this.#baseUrl + path);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return request(url.href, { headers: {}, body });
  }

  /** A request of the open quoting service. */
  open(path: string, body: unknown): Promise<unknown> {
    return request(`${this.#quotesUrl}/api/v3${path}`, { headers: {}, body });
  }
}

type GatewayRequest = { id?: string; query?: Record<string, string>; body?: unknown };

/** The refusal of a request, as a client catches it. Throws where the request was answered, or failed otherwise. */
export async function refusalOf(request: Promise<unknown>): Promise<ServiceError> {
  const error = await request.then(
    () => new Error('expected a refusal, found an answer'),
    (reason: unknown) => reason,
  );
  if (error instanceof ServiceError) return error;
  throw error;
}

/** The first text that names a cause, in the order in which clients search a body for it. */
function reasonIn(body: unknown): string | undefined {
  const details = memberOf(body, 'details');
  const [invalid] = listIn(body, 'validationErrors');
  const candidates = [
    memberOf(details, 'cause'),
    memberOf(details, 'errorDesc'),
    ...['errorDesc', 'cause', 'errorCode', 'error', 'message'].map((name) => memberOf(body, name)),
    // A Problem of the v1 API has these, and the gateway's refusal of a missing key the last.
    ...['detail', 'title', 'Message'].map((name) => memberOf(body, name)),
    // The open quoting service lists fields.
    invalid && JSON.stringify(invalid),
  ];
  return candidates.filter((text) => typeof text === 'string').find((text) => text !== '');
}

async function request(
  url: string,
  { headers, body }: { headers: Record<string, string>; body?: unknown },
): Promise<unknown> {
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(url, { headers: { ...headers, 'content-type': 'application/json' }, ...sent });
  const answer: unknown = await response.json();
  if (!response.ok) throw new ServiceError(response.status, answer);
  return answer;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function listIn(value: unknown, name: string): unknown[] {
  const member = memberOf(value, name);
  return Array.isArray(member) ? member : [];
}
