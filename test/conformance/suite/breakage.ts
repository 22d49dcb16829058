/** A request under way; `path` includes the query. */
export type ServiceRequest = { method: string; path: string; headers: Record<string, string>; body: string };

/** An answer under way. */
export type Answered = { status: number; headers: Record<string, string>; body: string };

/** A modification that breaks a rule between a client and a service that obeys it. */
export type Breakage = {
  request?: (request: ServiceRequest) => ServiceRequest;
  answer?: (answered: Answered, request: ServiceRequest) => Answered | Promise<Answered>;
};

/** Selects the affected answers; an omitted member matches all. `code` is in the answer's body. */
export type On = { path?: RegExp; method?: string; status?: number; code?: string; sent?: RegExp };

type Members = Record<string, unknown>;

/** True when a value is a JSON object. */
export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Text as JSON; undefined when it is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Edits every object at a place: member names with dots, `*` for every element of a list, empty for the whole. */
function visit(value: unknown, [key, ...rest]: readonly string[], edit: (members: Members) => void): void {
  if (key === undefined) {
    if (isMembers(value)) edit(value);
  } else if (key === '*') {
    if (Array.isArray(value)) for (const element of value) visit(element, rest, edit);
  } else if (isMembers(value)) {
    visit(value[key], rest, edit);
  }
}

function edited(body: string, place: string, edit: (members: Members) => void): string {
  const value = jsonOf(body);
  if (value === undefined) return body;
  visit(value, place === '' ? [] : place.split('.'), edit);
  return JSON.stringify(value);
}

function set(members: Members, name: string, value: unknown): void {
  const found: unknown = typeof value === 'function' ? value(members[name], members) : value;
  if (found === undefined) delete members[name];
  else members[name] = found;
}

function matches(on: On, answered: Answered, request: ServiceRequest): boolean {
  const { path, method, status, code, sent } = on;
  if (path !== undefined && !path.test(request.path)) return false;
  if (method !== undefined && method !== request.method) return false;
  if (status !== undefined && status !== answered.status) return false;
  if (sent !== undefined && !sent.test(`${request.path} ${request.body}`)) return false;
  if (code === undefined) return true;
  const body = jsonOf(answered.body);
  return isMembers(body) && body.code === code;
}

/** Changes matching answers. */
export function changing(
  on: On,
  change: (answered: Answered, request: ServiceRequest) => Answered | Promise<Answered>,
): Breakage {
  return {
    answer: (answered, request) => (matches(on, answered, request) ? change(answered, request) : answered),
  };
}

/** Replaces a member of every object at a place of the answer: by a value, by undefined to remove it, or by a function of it. */
export function member(on: On, place: string, name: string, value: unknown): Breakage {
  return changing(on, (answered) => ({
    ...answered,
    body: edited(answered.body, place, (members) => set(members, name, value)),
  }));
}

/** Replaces matching answers by another one. */
export function instead(on: On, answer: { status?: number; type?: string; body?: unknown }): Breakage {
  return changing(on, ({ status, headers, body }) => ({
    status: answer.status ?? status,
    headers: answer.type === undefined ? headers : { ...headers, 'content-type': answer.type },
    body: answer.body === undefined ? body : JSON.stringify(answer.body),
  }));
}

/** Accepts a request that should be refused. */
export function accepting(on: On, body: unknown = {}): Breakage {
  return instead(on, { status: 200, body });
}

/** Replaces a code of the table by another. */
export function otherCode(code: string): Breakage {
  return member({ code }, '', 'code', 'some-other-code');
}

/** Sets or removes a query parameter of requests to matching paths. */
export function changingQuery(path: RegExp, name: string, value?: string): Breakage {
  return {
    request: (request) => {
      if (!path.test(request.path)) return request;
      const url = new URL(request.path, 'http://service');
      if (!url.searchParams.has(name)) return request;
      if (value === undefined) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
      return { ...request, path: url.pathname + url.search };
    },
  };
}

/** Sets or removes a body member of requests to matching paths. */
export function sending(path: RegExp, place: string, name: string, value?: unknown): Breakage {
  return {
    request: (request) =>
      path.test(request.path)
        ? { ...request, body: edited(request.body, place, (members) => set(members, name, value)) }
        : request,
  };
}
