import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { AnyEvent } from '../../consumer/src/index.ts';

/** The contents of `consumer/vectors.json`, for the package itself and for programs in other languages. */
export const VECTORS = z
  .object({
    verification: z.array(
      z.object({
        name: z.string(),
        verdict: z.string(),
        secrets: z.array(z.string()),
        now: z.int(),
        headers: z.array(z.tuple([z.string(), z.string()])),
        body: z.base64(),
      }),
    ),
    handling: z.array(
      z.object({
        name: z.string(),
        deliveries: z.array(z.object({ event: z.custom<AnyEvent>(), verdict: z.string() })),
      }),
    ),
    facts: z.array(z.object({ name: z.string(), event: z.custom<AnyEvent>(), fact: z.string() })),
    lives: z.array(
      z.object({
        name: z.string(),
        events: z.array(z.custom<AnyEvent>()),
        tables: z.record(z.string(), z.array(z.array(z.string().nullable()))),
      }),
    ),
  })
  .parse(JSON.parse(readFileSync(new URL('../../consumer/vectors.json', import.meta.url), 'utf8')));
