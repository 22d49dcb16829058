import { z } from 'zod';
import { documentOf } from '../openapi.ts';
import { type ApiRoute, defineRoute, NO_INPUT } from '../route.ts';

/** Made once: that takes as long as hundreds of other requests. */
const documents = new WeakMap<readonly ApiRoute[], ReturnType<typeof documentOf>>();

function knownDocumentOf(routes: readonly ApiRoute[]): ReturnType<typeof documentOf> {
  const known = documents.get(routes);
  if (known !== undefined) return known;
  const document = documentOf(routes);
  documents.set(routes, document);
  return document;
}

/** The document that describes the API, this route included. */
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
  handle: async (_input, { routes }) => ({ status: 200, body: knownDocumentOf(routes) }),
});
