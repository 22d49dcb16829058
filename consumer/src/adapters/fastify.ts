import type { Consumer } from '../consumer.ts';
import type { HeadersInput } from '../headers.ts';

/** Required members of a Fastify instance. */
export type FastifyScope = {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    contentType: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    parser: (request: never, body: Buffer, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown;
  post(
    path: string,
    handler: (
      request: { headers: HeadersInput; body: unknown },
      reply: {
        code(status: number): unknown;
        headers(values: Record<string, string>): unknown;
        send(body?: string): unknown;
      },
    ) => Promise<unknown>,
  ): unknown;
};

/** A plugin: `app.register(fastifyConsumer, { consumer, path: '/hooks' })`. Only its own scope reads raw bytes. */
export async function fastifyConsumer<C>(
  app: FastifyScope,
  { consumer, path }: { consumer: Consumer<C>; path: string },
): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    '*',
    { parseAs: 'buffer', bodyLimit: consumer.maxBodyBytes },
    (_request, body, done) => done(null, body),
  );
  app.post(path, async (request, reply) => {
    const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
    const answer = await consumer.receive({ headers: request.headers, body });
    reply.code(answer.status);
    reply.headers({ ...answer.headers });
    return reply.send(answer.body === '' ? undefined : answer.body);
  });
}
