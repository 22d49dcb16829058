import { performance } from 'node:perf_hooks';
import type { JsonValue } from '../../domain/json.ts';
import type { Secret } from '../../secret.ts';
import { Thread, ThreadError } from '../../thread.ts';
import {
  type Excerpt,
  excerptWithout,
  type HttpAnswer,
  type HttpRequest,
  type NoAnswer,
  Transport,
} from '../http/transport.ts';
import { describeSupport, readProblem, type SupportDetails } from '../wire/problem.ts';
import type { Parsed } from '../wire/wire.ts';
import { type Endpoint, isList, limitsOf } from './endpoint.ts';
import { type FailureCode, failureOfCode, type TooLarge, UpstreamFailure } from './failure.ts';
import { LIST_MODULE, type ListTask, type ParsedBody, type ReceivedBody, readText } from './read-list.ts';

/** Header with the API key (interface, Authentication, 1). */
export const KEY_HEADER = 'x-api-key';

const BODY_CHARS = 120;
const HEADER_CHARS = 80;
const FAULT_CHARS = 120;

/** Most refused fields and solvers named in a message; the failure has all. */
const SHOWN_FAULTS = 3;

/** A value answered by the upstream. */
export type Answer<T> = {
  value: T;
  /** 2xx: a submit answers 200 instead of 202 when the job existed already. */
  httpStatus: number;
  /** Date header of the answer, milliseconds since 1970: the upstream's clock. */
  dateMs: number | null;
  durationMs: number;
};

/** Outcome of a request, for metrics. `dateMs`: the `Date` of a usable response. */
export type Outcome = {
  endpoint: Endpoint;
  outcome: 'ok' | FailureCode;
  durationSeconds: number;
  dateMs: number | null;
};

/** One request: its endpoint, the expected answer as text, and the reader of the body. */
export type Question<T> = {
  endpoint: Endpoint;
  /** True for the endpoints that take the API key, whether or not there is one. */
  takesKey: boolean;
  request: Omit<HttpRequest, 'maxBodyBytes'>;
  expected: string;
  read: (body: JsonValue) => Parsed<T>;
  /** Reads the body instead, unless `onBody` wants all of it. */
  readBody?: ((body: ReceivedBody) => ParsedBody<T>) | undefined;
  /** Called with the body of a success before it is read; the body is then parsed in this thread, whatever its size. */
  onBody?: ((body: JsonValue) => void) | undefined;
};

/** Options of a client, whatever it requests. */
export type RequesterOptions = {
  /** For connecting, headers and body together. */
  timeoutMs: number;
  /** URL of the proxy; absent or `null` for none. */
  proxy?: Secret | null;
  /** Called once per answered or failed request, not for one that the caller aborted. */
  onAnswer?: (answer: Outcome) => void;
};

export type RequestContext = ReturnType<typeof requestContext>;

/** A smaller text is parsed faster than a thread receives it: any usual list. */
const THREAD_FROM_CHARS = 262_144;

/** Far more time than a list of the largest size takes, also on a busy machine. */
const LIST_MS = 60_000;

/** Makes the context of a client's requests. `lists`: the thread that parses large lists. */
export function requestContext({
  apiKey,
  timeoutMs,
  proxy = null,
  onAnswer = () => {},
}: RequesterOptions & { apiKey: Secret | null }) {
  return {
    transport: new Transport({ timeoutMs, proxy }),
    lists: new Thread<ListTask, ParsedBody<unknown>>({ module: LIST_MODULE, mostMs: LIST_MS }),
    excerpt: excerptWithout({ apiKey, proxy }),
    onAnswer,
  };
}

/** Sends a request, reads the answer and counts it. Throws UpstreamFailure, or the caller's abort reason, uncounted. */
export async function send<T>(context: RequestContext, question: Question<T>): Promise<Answer<T>> {
  const { endpoint } = question;
  const startedMs = performance.now();
  const { bytes: maxBodyBytes } = limitsOf(endpoint);
  const exchange = await context.transport.send({ ...question.request, maxBodyBytes });
  const result =
    exchange.kind === 'answer'
      ? await interpret(question, { answer: exchange, excerpt: context.excerpt, lists: context.lists })
      : unanswered(question, { exchange, excerpt: context.excerpt });
  const durationMs = performance.now() - startedMs;
  const [outcome, dateMs] =
    result instanceof UpstreamFailure ? ([result.code, null] as const) : (['ok', result.dateMs] as const);
  context.onAnswer({ endpoint, outcome, durationSeconds: durationMs / 1000, dateMs });
  if (result instanceof UpstreamFailure) throw result;
  return { ...result, durationMs };
}

type ParsedResponse<T> = { value: T; httpStatus: number; dateMs: number | null };

async function interpret<T>(
  question: Question<T>,
  got: { answer: HttpAnswer; excerpt: Excerpt; lists: RequestContext['lists'] },
): Promise<ParsedResponse<T> | UpstreamFailure> {
  const { answer } = got;
  if (answer.httpStatus < 200 || answer.httpStatus > 299) return refused(question, got);
  if (answer.cut === 'timeout')
    return unusable(question, { ...got, code: 'timeout', flaw: 'no end of the body' });
  const malformed = { ...got, code: 'malformed' } as const;
  if (answer.cut === 'too large') {
    const tooLarge = tooLargeOf(got, `more than ${limitsOf(question.endpoint).bytes} bytes`);
    return unusable(question, { ...malformed, flaw: 'a body too large', tooLarge });
  }
  if (answer.cut !== null) return unusable(question, { ...malformed, flaw: `a body ${answer.cut}` });
  const parsed = await parse(question, answer, got.lists);
  if ('beyond' in parsed) {
    const tooLarge = tooLargeOf(got, parsed.beyond);
    return unusable(question, { ...malformed, flaw: parsed.beyond, tooLarge });
  }
  if ('mismatch' in parsed) return unusable(question, { ...malformed, flaw: parsed.mismatch });
  return { value: parsed.value, httpStatus: answer.httpStatus, dateMs: answer.dateMs };
}

/** Reads a body; a large list in a thread. Throws the caller's abort reason. */
async function parse<T>(
  { endpoint, read, readBody, request, onBody }: Question<T>,
  body: ReceivedBody,
  lists: RequestContext['lists'],
): Promise<ParsedBody<T>> {
  if (readBody !== undefined && onBody === undefined) return readBody(body);
  const { text } = body;
  if (onBody !== undefined) {
    return readText(text, {
      endpoint,
      read: (body) => {
        onBody(body);
        return read(body);
      },
    });
  }
  if (!isList(endpoint) || text.length < THREAD_FROM_CHARS) return readText(text, { endpoint, read });
  try {
    return (await lists.run({ endpoint, text })) as ParsedBody<T>;
  } catch (error) {
    request.signal?.throwIfAborted();
    if (error instanceof ThreadError) return { mismatch: `a body that ${error.message}` };
    throw error;
  }
}

/** Start of a page, up to the id of its first record. A record may have another member before it. */
const FIRST_ID = /^\s*\{\s*"results"\s*:\s*\[\s*\{\s*"id"\s*:\s*"([^"\\]{1,200})"/;
const ID_CHARS = 200;

function tooLargeOf({ answer, excerpt }: { answer: HttpAnswer; excerpt: Excerpt }, found: string): TooLarge {
  const id = FIRST_ID.exec(answer.text.slice(0, 4_096))?.[1];
  return { found, firstId: id === undefined ? null : excerpt(id, ID_CHARS) };
}

/** Failure of an answer with an error status: the status decides, however the body ended. */
function refused<T>(question: Question<T>, got: { answer: HttpAnswer; excerpt: Excerpt }): UpstreamFailure {
  const { answer, excerpt } = got;
  const problem = readProblem(answer.text);
  const problemCode =
    problem.code !== null && excerpt(problem.code, 64) === problem.code ? problem.code : null;
  const fields = problem.fields.map(({ field, detail }) => ({
    field: excerpt(field, FAULT_CHARS),
    detail: excerpt(detail, FAULT_CHARS),
  }));
  const solvers = problem.solvers.map(({ solver, code, message }) => ({
    solver: excerpt(solver, FAULT_CHARS),
    code: excerpt(code, FAULT_CHARS),
    message: excerpt(message, FAULT_CHARS),
  }));
  const support = excerptSupport(problem.support, excerpt);
  const notes = [
    problemCode,
    problem.detail === null ? null : excerpt(problem.detail, BODY_CHARS),
    ...fields.slice(0, SHOWN_FAULTS).map(({ field, detail }) => `${field}: ${detail}`),
    ...solvers
      .slice(0, SHOWN_FAULTS)
      .map(({ solver, code, message }) => `solver ${solver}: ${code}, ${message}`),
    // A redirect is not followed, but its target shows the operator the right base URL.
    answer.location === null ? null : `location ${excerpt(withoutQuery(answer.location), HEADER_CHARS)}`,
  ].filter((note) => note !== null);
  return new UpstreamFailure({
    endpoint: question.endpoint,
    code: classify({ httpStatus: answer.httpStatus, problemCode }) ?? 'malformed',
    found: [
      describe(got),
      notes.length === 0 ? '' : ` (${notes.join('; ')})`,
      Object.keys(support).length === 0 ? '' : `, ${describeSupport(support)}`,
    ].join(''),
    expected: question.expected,
    httpStatus: answer.httpStatus,
    problemCode,
    support,
    retryAfterMs: answer.retryAfterMs,
    takesKey: question.takesKey,
    hasKey: question.request.headers[KEY_HEADER] !== undefined,
    isPage: /^\s*</.test(answer.text),
    fields,
    solvers,
  });
}

function excerptSupport(details: SupportDetails, excerpt: Excerpt): SupportDetails {
  return Object.fromEntries(
    Object.entries(details).map(([name, value]) => [name, excerpt(value, FAULT_CHARS)]),
  );
}

/** Failure of an answer with a success status and no usable content. */
function unusable<T>(
  question: Question<T>,
  got: {
    answer: HttpAnswer;
    excerpt: Excerpt;
    code: FailureCode;
    flaw: string;
    tooLarge?: TooLarge;
  },
): UpstreamFailure {
  return new UpstreamFailure({
    endpoint: question.endpoint,
    code: got.code,
    found: `${got.flaw} in ${describe(got)}`,
    expected: question.expected,
    httpStatus: got.answer.httpStatus,
    problemCode: null,
    retryAfterMs: null,
    tooLarge: got.tooLarge ?? null,
  });
}

function unanswered<T>(
  question: Question<T>,
  got: { exchange: NoAnswer; excerpt: Excerpt },
): UpstreamFailure {
  const { exchange, excerpt } = got;
  const facts = {
    endpoint: question.endpoint,
    expected: question.expected,
    httpStatus: null,
    problemCode: null,
    retryAfterMs: null,
  };
  switch (exchange.kind) {
    case 'timeout':
      return new UpstreamFailure({ ...facts, code: 'timeout', found: 'no answer in time' });
    case 'garbled':
      return new UpstreamFailure({ ...facts, code: 'malformed', found: `no HTTP (${exchange.reason})` });
    case 'lost': {
      const { cause } = exchange;
      const code = 'code' in cause ? String(cause.code) : '';
      const words = cause.message.includes(code) ? cause.message : `${code} ${cause.message}`;
      const found = `no answer, the connection failed: ${excerpt(words, BODY_CHARS)}`;
      return new UpstreamFailure({ ...facts, code: 'unavailable', found, cause });
    }
    default:
      return exchange satisfies never;
  }
}

function describe(got: { answer: HttpAnswer; excerpt: Excerpt }): string {
  const { answer, excerpt } = got;
  const type =
    answer.contentType === null ? 'without content type' : excerpt(answer.contentType, HEADER_CHARS);
  const body = excerpt(answer.text, BODY_CHARS);
  return `HTTP ${answer.httpStatus} ${type} ${body === '' ? 'without text' : `"${body}"`}`;
}

function withoutQuery(location: string): string {
  return location.split(/[?#]/)[0] ?? '';
}

/**
 * Failure of an answer by its HTTP status; null for a success. The status decides, because gateways answer without a
 * problem body; the problem's code only counts when the status is ambiguous.
 */
export function classify(answer: { httpStatus: number; problemCode: string | null }): FailureCode | null {
  const { httpStatus, problemCode } = answer;
  if (httpStatus >= 200 && httpStatus < 300) return null;
  // The upstream is reachable, but the answer is not of its API: a wrong base URL or an intermediary.
  if (httpStatus < 400 || httpStatus > 599) return 'malformed';
  if (httpStatus >= 500) return 'unavailable';
  switch (httpStatus) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return 'not-found';
    case 408:
      return 'unavailable';
    case 429:
      return 'rate-limited';
    case 400:
    case 409:
    case 410:
    case 422:
      return 'invalid-request';
    default:
      return failureOfCode(problemCode) ?? 'invalid-request';
  }
}
