import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { type Preparation, ROUTE } from './preparation.ts';
import { isMembers, jsonOf } from './suite/breakage.ts';
import { type Material, materialSchema } from './suite/material.ts';
import type { Rule, Target } from './suite/rule.ts';

const environment = z.object({
  CONFORMANCE_BASE_URL: z.url().optional(),
  CONFORMANCE_API_KEY: z.string().min(1).optional(),
  CONFORMANCE_QUOTES_URL: z.url().optional(),
  CONFORMANCE_MATERIAL: z.string().min(1).optional(),
});

/**
 * The service that the environment names; null when it names none. Throws when a variable is malformed, the key is missing, or
 * the material (a JSON file) does not match `docs/conformance.md`.
 */
export async function givenService(env: NodeJS.ProcessEnv): Promise<Target | null> {
  const found = environment.safeParse(env);
  if (!found.success) throw new Error(`environment: ${z.prettifyError(found.error)}`);
  const { CONFORMANCE_BASE_URL: baseUrl, CONFORMANCE_API_KEY: apiKey, ...more } = found.data;
  if (baseUrl === undefined) return null;
  if (apiKey === undefined) throw new Error('CONFORMANCE_API_KEY is not set, expected the key for x-api-key');
  const quotesUrl = more.CONFORMANCE_QUOTES_URL;
  const material = await materialIn(more.CONFORMANCE_MATERIAL);
  return {
    baseUrl: withoutSlash(baseUrl),
    apiKey,
    material: { ...material, ...(quotesUrl === undefined ? {} : { quotesUrl: withoutSlash(quotesUrl) }) },
  };
}

/** Describes the parts that a given service lacks for a rule; null when it lacks nothing. */
export function lackOf({ material }: Target, { stage, needs = [] }: Rule): string | null {
  if (typeof stage === 'object') return `a service that answers ${stage.failing}`;
  const missing = needs.filter((need) => material[need] === undefined);
  return missing.length === 0 ? null : missing.join(', ');
}

/** A given service has no stages to bring it to. */
export function asGiven(target: Target): Preparation {
  return { at: async () => target, close: async () => undefined };
}

async function materialIn(path: string | undefined): Promise<Material> {
  if (path === undefined) return { route: ROUTE };
  const given = jsonOf(await readFile(path, 'utf8'));
  if (!isMembers(given)) throw new Error(`${path}: expected a JSON object`);
  const found = materialSchema.safeParse({ route: ROUTE, ...given });
  if (found.success) return found.data;
  throw new Error(`${path}: ${z.prettifyError(found.error)}`);
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
