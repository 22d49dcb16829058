import { z } from 'zod';
import { documentOf } from '../openapi.ts';
import { defineRoute, NO_INPUT } from '../route.ts';

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
  handle: async (_input, { routes }) => ({ status: 200, body: documentOf(routes) }),
});
