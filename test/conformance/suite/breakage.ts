/** A request on its way; `path` carries the query. */
export type Asked = { method: string; path: string; headers: Record<string, string>; body: string };

/** An answer on its way back. */
export type Answered = { status: number; headers: Record<string, string>; body: string };

/** How a rule is broken on the way between a client and a service that keeps it. */
export type Breakage = {
  request?: (asked: Asked) => Asked;
  answer?: (answered: Answered, asked: Asked) => Answered | Promise<Answered>;
};

/** Which answers are touched; what is left out does not matter. `code` stands in the answer's body. */
export type On = { path?: RegExp; method?: string; status?: number; code?: string; sent?: RegExp };

type Members = Record<string, unknown>;

/** True when a value is a JSON object. */
export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Text as JSON; undefined when it is none. */
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

function matches(on: On, answered: Answered, asked: Asked): boolean {
  const { path, method, status, code, sent } = on;
  if (path !== undefined && !path.test(asked.path)) return false;
  if (method !== undefined && method !== asked.method) return false;
  if (status !== undefined && status !== answered.status) return false;
  if (sent !== undefined && !sent.test(`${asked.path} ${asked.body}`)) return false;
  if (code === undefined) return true;
  const body = jsonOf(answered.body);
  return isMembers(body) && body.code === code;
}

/** Answers that match are changed. */
export function changing(
  on: On,
  change: (answered: Answered, asked: Asked) => Answered | Promise<Answered>,
): Breakage {
  return {
    answer: (answered, asked) => (matches(on, answered, asked) ? change(answered, asked) : answered),
  };
}

/** A member of every object at a place of the answer becomes something else: a value, undefined to take it out, or a function of it. */
export function member(on: On, place: string, name: string, value: unknown): Breakage {
  return changing(on, (answered) => ({
    ...answered,
    body: edited(answered.body, place, (members) => set(members, name, value)),
  }));
}

/** Another answer takes the place of one that matches. */
export function instead(on: On, answer: { status?: number; type?: string; body?: unknown }): Breakage {
  return changing(on, ({ status, headers, body }) => ({
    status: answer.status ?? status,
    headers: answer.type === undefined ? headers : { ...headers, 'content-type': answer.type },
    body: answer.body === undefined ? body : JSON.stringify(answer.body),
  }));
}

/** What should be refused is taken. */
export function taken(on: On, body: unknown = {}): Breakage {
  return instead(on, { status: 200, body });
}

/** A code of the table is another one. */
export function otherCode(code: string): Breakage {
  return member({ code }, '', 'code', 'some-other-code');
}

/** Requests to paths that match carry another query parameter, or none. */
export function asking(path: RegExp, name: string, value?: string): Breakage {
  return {
    request: (asked) => {
      if (!path.test(asked.path)) return asked;
      const url = new URL(asked.path, 'http://service');
      if (!url.searchParams.has(name)) return asked;
      if (value === undefined) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
      return { ...asked, path: url.pathname + url.search };
    },
  };
}

/** Requests to paths that match carry another member in their body, or none. */
export function sending(path: RegExp, place: string, name: string, value?: unknown): Breakage {
  return {
    request: (asked) =>
      path.test(asked.path)
        ? { ...asked, body: edited(asked.body, place, (members) => set(members, name, value)) }
        : asked,
  };
}
