import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from '../answer.ts';
import type { Consumer } from '../consumer.ts';
import { bodyTooLarge, WebhookError } from '../error.ts';

/** A request of node:http; Express and others add `body`, and some store the bytes in `rawBody`. */
export type NodeRequest = IncomingMessage & { body?: unknown; rawBody?: unknown };

/**
 * A listener for node:http, and a handler for Express: `app.post('/hooks', nodeHandler(consumer))`. In Express it goes before
 * `express.json()`, behind `express.raw({ type: () => true })`, or where a parser stores the bytes in `rawBody`.
 */
export function nodeHandler<C>(
  consumer: Consumer<C>,
): (request: NodeRequest, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    let answer: Answer;
    try {
      if (request.method !== 'POST') throw methodNotAllowed(request.method);
      const body = await readBody(request, consumer.maxBodyBytes);
      answer = await consumer.receive({ headers: request.headers, body });
    } catch (error) {
      // The sender cut the request off and expects no answer.
      if (request.errored !== null && request.errored !== undefined) return;
      answer = consumer.refuse(error);
    }
    // Unread bytes would be parsed as the next request of this connection.
    const headers = request.complete ? answer.headers : { ...answer.headers, connection: 'close' };
    response.writeHead(answer.status, headers).end(answer.body);
  };
}

/** The error of a request with another method than POST. */
export function methodNotAllowed(method: string | undefined): WebhookError {
  return new WebhookError('method_not_allowed', `found ${method ?? 'no method'}, expected POST`);
}

/** Reads the bytes of a request from the stream or from a parser's copy. */
async function readBody(request: NodeRequest, maxBodyBytes: number): Promise<Uint8Array> {
  for (const body of [request.rawBody, request.body]) if (body instanceof Uint8Array) return body;
  if (request.body !== undefined || request.readableEnded) throw bodyParsed(request.body);
  const chunks: Buffer[] = [];
  let length = 0;
  // A loop that ends early would destroy the connection before the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const bytes: Buffer = Buffer.from(chunk);
    length += bytes.length;
    if (length > maxBodyBytes) throw bodyTooLarge(maxBodyBytes);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function bodyParsed(body: unknown): WebhookError {
  const found =
    body === undefined
      ? 'read'
      : `read and made ${typeof body === 'object' ? 'an object' : `a ${typeof body}`}`;
  return new WebhookError(
    'body_parsed',
    `the body was ${found} before it could be verified, expected its bytes: put this route before express.json(), or give express.json a verify that stores them: { verify: (request, _response, bytes) => { request.rawBody = bytes } }`,
  );
}
