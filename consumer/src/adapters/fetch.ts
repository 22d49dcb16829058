import type { Answer } from '../answer.ts';
import type { Consumer } from '../consumer.ts';
import { bodyTooLarge, WebhookError } from '../error.ts';
import { methodNotAllowed } from './node.ts';

/** A handler for frameworks with the Fetch API: Hono, Next.js route handlers, Remix, SvelteKit, Deno, Bun. */
export function fetchHandler<C>(consumer: Consumer<C>): (request: Request) => Promise<Response> {
  return async (request) => {
    let answer: Answer;
    try {
      if (request.method !== 'POST') throw methodNotAllowed(request.method);
      const body = await readBody(request, consumer.maxBodyBytes);
      answer = await consumer.receive({ headers: request.headers, body });
    } catch (error) {
      answer = consumer.refuse(error);
    }
    const { status, headers, body } = answer;
    return new Response(body === '' ? null : body, { status, headers });
  };
}

async function readBody(request: Request, maxBodyBytes: number): Promise<Uint8Array> {
  if (request.bodyUsed)
    throw new WebhookError(
      'body_parsed',
      'the body was read before it could be verified, expected its bytes: give this handler the request before request.json()',
    );
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    length += value.byteLength;
    if (length > maxBodyBytes) {
      await reader.cancel();
      throw bodyTooLarge(maxBodyBytes);
    }
    chunks.push(value);
  }
}
