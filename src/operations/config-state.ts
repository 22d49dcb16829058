import { z } from 'zod';
import { withTimeout } from '../with-timeout.ts';
import { RefusedError } from './errors.ts';
import { isoTime, isoTimeOrNull } from './moment.ts';

const NAMED_CHANGES = z.object({
  added: z.array(z.string()),
  removed: z.array(z.string()),
  changed: z.array(z.string()),
});

/** What there is more, less, or another of, by name. */
export type NamedChanges = z.infer<typeof NAMED_CHANGES>;

const CONFIG_CHANGES = z
  .object({
    subjects: z
      .object({ added: z.int(), removed: z.int() })
      .describe('How many are watched that were not, and the other way round.'),
    subscriptions: NAMED_CHANGES,
    receivers: NAMED_CHANGES,
    settings: z.array(z.string()).describe('Keys of the config, such as `upstream.requestsPerSecond`.'),
  })
  .meta({ id: 'ConfigChanges' });

/** What differs between two configs. */
export type ConfigChanges = z.infer<typeof CONFIG_CHANGES>;

/** The config that runs, and what came of reading it last. */
export const CONFIG_STATE = z
  .object({
    digest: z
      .string()
      .describe(
        'Of the config that runs, without its secrets: the same in all processes that have the same config.',
      ),
    lastReload: z
      .object({
        at: z.iso.datetime(),
        ok: z.boolean().describe('Whether it was applied. If not, the config before it goes on.'),
        changes: CONFIG_CHANGES.nullable().describe(
          'Null for the reading at the start, and where it was refused.',
        ),
        error: z.string().nullable().describe('Why it was refused, a line per problem.'),
        retryAt: z.iso.datetime().nullable().describe('When it is tried again by itself.'),
      })
      .nullable()
      .describe('The last time that the config was read; null where it is read only once.'),
  })
  .meta({ id: 'ConfigState' });

export type ConfigState = z.infer<typeof CONFIG_STATE>;

/**
 * What came of reading the config (own clock, ms). `error` has a line per problem, as `check` says it; `retryAtMs` is when
 * it is tried again, null where that could change nothing.
 */
export type ReloadResult =
  | { atMs: number; ok: true; changes: ConfigChanges | null }
  | { atMs: number; ok: false; error: string; retryAtMs: number | null };

/** What a daemon says of its config, and how it is told to read it again; both null where there is no file. */
export type ConfigControl = {
  digest: () => string;
  lastReload: () => ReloadResult | null;
  reload: () => Promise<ReloadResult | null>;
};

/** The config that runs, and what came of reading it last. */
export function configStateOf({ digest, lastReload }: ConfigControl): ConfigState {
  const last = lastReload();
  if (last === null) return { digest: digest(), lastReload: null };
  const outcome = last.ok
    ? { ok: true, changes: last.changes, error: null, retryAt: null }
    : { ok: false, changes: null, error: last.error, retryAt: isoTimeOrNull(last.retryAtMs) };
  return { digest: digest(), lastReload: { at: isoTime(last.atMs), ...outcome } };
}

/**
 * Reads the config anew and applies it. Null when that is not done within a time: it goes on by itself. Throws a
 * RefusedError with every reason where it is refused.
 */
export async function reloadConfig(
  control: ConfigControl,
  { withinMs }: { withinMs: number },
): Promise<ConfigState | null> {
  if (control.lastReload() === null)
    throw new RefusedError('found a daemon that was started without a file, expected a config file');
  const result = await withTimeout(control.reload(), withinMs);
  if (result === null) return null;
  if (!result.ok) throw new RefusedError(result.error);
  return configStateOf(control);
}
