import { z } from 'zod';
import { Secret } from '../../secret.ts';
import type { RedisConfig } from '../config.ts';
import { mapping, textField } from '../fields/fields.ts';
import { parseRedisUrl, REDIS_URL_EXPECTED } from './redis-target.ts';

/** The `redis` section. */
export const redisSchema = mapping({
  url: z
    .string({ error: REDIS_URL_EXPECTED })
    .refine((text) => parseRedisUrl(text) !== null, { error: REDIS_URL_EXPECTED })
    .transform((text) => new Secret(text))
    .meta({ writeOnly: true })
    .optional()
    .meta({
      description:
        'Which Redis keeps the state. Left out, a private `redis-server` is started that keeps its data under `dataDir`.',
      label: 'URL',
    }),
  prefix: textField({
    pattern: /^[a-z0-9][a-z0-9-]{0,62}$/,
    expected: 'a prefix of 1 to 63 lower-case letters, digits and hyphens that does not begin with a hyphen',
  })
    .prefault('intentwatch')
    .meta({
      description: 'What all keys begin with, so that several daemons can share one Redis.',
      label: 'name',
    }),
}).meta({ description: 'Where the state is kept.', example: [{ url: '${REDIS_URL}' }] });

/** Redis as the rest of the program sees it. */
export function buildRedis(section: z.output<typeof redisSchema>): RedisConfig {
  return { url: section.url ?? null, prefix: section.prefix };
}
