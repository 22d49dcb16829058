import { z } from 'zod';
import { Secret } from '../../secret.ts';
import type { RedisConfig } from '../config.ts';
import { mapping, textField } from '../fields/fields.ts';
import { decoded } from '../fields/http.ts';

/**
 * Location of Redis: one server (by URL or by socket), a Sentinel group, or a Cluster. Written in `redis.url` as `redis://`
 * or `rediss://host:port/db`, `redis+sentinel://host:port,host:port/group`, `redis+cluster://host:port,host:port`.
 */
export type RedisTarget =
  | { kind: 'server'; url: string }
  | { kind: 'socket'; path: string }
  | {
      kind: 'sentinel';
      hosts: Host[];
      group: string;
      username?: string;
      password?: string;
      tls: boolean;
    }
  | { kind: 'cluster'; hosts: Host[]; username?: string; password?: string; tls: boolean };

export type Host = { host: string; port: number };

const GROUP_URL = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/]+)(?:\/(.*))?$/;

const REDIS_URL_EXPECTED =
  'a URL like redis://127.0.0.1:6379, redis+sentinel://host:26379,host:26379/group or redis+cluster://host:6379,host:6379 (rediss for TLS)';

/** Parses `redis.url`; null for any other text. */
export function parseRedisUrl(text: string): RedisTarget | null {
  const group = GROUP_URL.exec(text);
  if (group === null) {
    const url = /^rediss?:\/\/\S+$/i.test(text) ? URL.parse(text) : null;
    if (url === null || url.hostname === '' || !/^(\/\d{0,9})?$/.test(url.pathname)) return null;
    const isDecodable = decoded(url.username) !== null && decoded(url.password) !== null;
    return isDecodable ? { kind: 'server', url: text } : null;
  }
  const [, scheme, kind, user = '', secret = '', list = '', name] = group;
  const hosts = list.split(',').map((host) => parseHost(host, kind === 'sentinel' ? 26_379 : 6_379));
  const [username, password] = [decoded(user), decoded(secret)];
  if (!hosts.every((host) => host !== null) || username === null || password === null) return null;
  const common = {
    hosts,
    tls: scheme === 'rediss',
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
  };
  if (kind === 'cluster') return { kind: 'cluster', ...common };
  return !name ? null : { kind: 'sentinel', group: name, ...common };
}

function parseHost(text: string, defaultPort: number): Host | null {
  const match = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[2] ?? defaultPort);
  if (match?.[1] === undefined || port < 1 || port > 65_535) return null;
  return { host: match[1].replace(/^\[|\]$/g, ''), port };
}

export const redisSchema = mapping({
  url: z
    .string({ error: REDIS_URL_EXPECTED })
    .refine((text) => parseRedisUrl(text) !== null, { error: REDIS_URL_EXPECTED })
    .transform((text) => new Secret(text))
    .meta({ writeOnly: true })
    .optional()
    .meta({
      description:
        'The Redis that stores the state. Left out, a private `redis-server` is started that stores its data under `dataDir`.',
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
}).meta({ description: 'Where the state is stored.', example: [{ url: '${REDIS_URL}' }] });

/** Builds the Redis settings from the parsed section. */
export function buildRedis(section: z.output<typeof redisSchema>): RedisConfig {
  return { url: section.url ?? null, prefix: section.prefix };
}
