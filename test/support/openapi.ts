import { Validator } from '@seriousme/openapi-schema-validator';
import { OpenAPIClientAxios } from 'openapi-client-axios';
import type { JsonObject } from '../../src/domain/json.ts';

/** Validates a document against OpenAPI 3.1, and makes a client from it that calls operations by their names. */
export async function validator(
  document: JsonObject,
  { url, token }: { url: string; token: string },
): Promise<{
  errors: unknown;
  client: (operation: string, parameters: Record<string, string>, body?: object) => Promise<unknown>;
}> {
  const result = await new Validator().validate(structuredClone(document));
  const api = new OpenAPIClientAxios({
    definition: JSON.parse(JSON.stringify({ ...document, servers: [{ url: `${url}/api/v1` }] })),
    axiosConfigDefaults: { headers: { authorization: `Bearer ${token}` } },
  });
  const client = await api.init();
  return {
    errors: result.valid ? [] : result.errors,
    client: async (operation, parameters, body) => {
      const call = client[operation];
      if (typeof call !== 'function') throw new Error(`the client has no ${operation}`);
      return (await call(parameters, body)).data;
    },
  };
}
