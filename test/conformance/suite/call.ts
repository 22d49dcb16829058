import { request } from 'undici';
import { z } from 'zod';
import { jsonOf } from './breakage.ts';
import { conforms, holds, same } from './expectation.ts';
import { given, type Target } from './rule.ts';

/** An answer; `body` is undefined where it is not JSON. */
export type Reply = { status: number; headers: Record<string, string>; body: unknown; text: string };

/** A request. `key` null sends none; `body` is sent as JSON, text unchanged. */
export type Question = {
  method?: 'GET' | 'POST';
  path: string;
  query?: Record<string, string>;
  key?: string | null;
  body?: unknown;
  headers?: Record<string, string>;
};

const TIMEOUT_MS = 60_000;

async function send(baseUrl: string, question: Question & { key: string | null }): Promise<Reply> {
  const { method = 'GET', path, query = {}, key, body, headers = {} } = question;
  const search = new URLSearchParams(query).toString();
  const response = await request(`${baseUrl}${path}${search === '' ? '' : `?${search}`}`, {
    method,
    headers: {
      ...(key === null ? {} : { 'x-api-key': key }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  });
  const text = await response.body.text();
  const received = Object.entries(response.headers).map(([name, value]) => [name, String(value ?? '')]);
  return {
    status: response.statusCode,
    headers: Object.fromEntries(received),
    body: jsonOf(text),
    text,
  };
}

/** Sends a request to the service, with its key unless the question has another. */
export function call(target: Target, question: Question): Promise<Reply> {
  target.tally?.answered();
  return send(target.baseUrl, { key: target.apiKey, ...question });
}

/** Requests quotes of the open quoting service; there is no key. */
export function requestOpenly(target: Target, body: unknown): Promise<Reply> {
  const question = { method: 'POST', path: '/api/v3/quotes/exactIn', key: null, body } as const;
  target.tally?.answered();
  return send(given(target, 'quotesUrl'), question);
}

/** The body of an answer; fails on another status or a body that is not JSON. */
export function bodyOf(reply: Reply, status = 200): unknown {
  same(reply.status, status, `HTTP status of ${reply.text.slice(0, 200)}`);
  holds(reply.body !== undefined, `found ${reply.text.slice(0, 200)}, expected JSON`);
  return reply.body;
}

const problemSchema = z.looseObject({
  type: z.string(),
  title: z.string().min(1),
  status: z.int(),
  code: z.string(),
  detail: z.string().optional(),
  errors: z.array(z.object({ field: z.string().min(1), detail: z.string().min(1) })).optional(),
  solverErrors: z.array(z.unknown()).optional(),
});

/** The Problem of a refusal; fails on another status or code. */
export function refused(reply: Reply, status: number, code: string): z.infer<typeof problemSchema> {
  const problem = conforms(problemSchema, bodyOf(reply, status), 'Problem');
  same(problem.code, code, 'code');
  same(problem.status, status, 'status');
  return problem;
}

/** The message of a refusal in the deposit-vault endpoints' own format: any but a Problem. */
export function refusedByGateway(reply: Reply, status: number): string {
  same(reply.status, status, `HTTP status of ${reply.text.slice(0, 200)}`);
  const type = reply.headers['content-type'] ?? '';
  holds(!type.includes('problem+json'), `content type: found ${type}, expected none of a Problem`);
  return reply.text;
}

/** Fails unless the Problem names the field. */
export function names(problem: z.infer<typeof problemSchema>, field: string): void {
  const fields = (problem.errors ?? []).map((error) => error.field);
  holds(fields.includes(field), `errors: found ${fields.join(', ') || 'none'}, expected ${field}`);
}
