import { z } from 'zod';
import { FILE_STATES } from '../config/sections/process.ts';
import { withTimeout } from '../with-timeout.ts';
import { RefusedError } from './operation.ts';
import { isoTime, isoTimeOrNull } from './time.ts';

const REMOVED = z.object({
  removed: z.int().describe('How many would go.'),
  of: z.int().describe('Of how many.'),
  ids: z.array(z.string()).describe('The first 100 of them.'),
});

const CONFIG_REMOVAL = z
  .object({
    at: z.iso.datetime(),
    held: z
      .boolean()
      .describe(
        'True for a reload that waits for its confirmation; false for a start, which has applied its file.',
      ),
    digest: z
      .string()
      .describe('Of the file with all its sections: `POST /reload?confirm=…` applies exactly this file.'),
    confirmAfter: z.number().describe('The share of `reload.confirmAfter` that was exceeded, 0 to 1.'),
    wallets: REMOVED,
    subjects: REMOVED.describe('Whatever else subscriptions name: intents, quotes, jobs, vaults and so on.'),
    receivers: REMOVED,
  })
  .meta({ id: 'ConfigRemoval' });

export type ConfigRemoval = z.infer<typeof CONFIG_REMOVAL>;

const NAMED_CHANGES = z.object({
  added: z.array(z.string()),
  removed: z.array(z.string()),
  changed: z.array(z.string()),
});

/** Names of added, removed and changed entries. */
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

/** Differences between two configs. */
export type ConfigChanges = z.infer<typeof CONFIG_CHANGES>;

/** The running config, the state of the file against it, and the result of the last read. */
export const CONFIG_STATE = z
  .object({
    digest: z
      .string()
      .describe(
        'Of the config that runs, without its secrets: the same in all processes that have the same config.',
      ),
    state: z
      .enum(FILE_STATES)
      .describe(
        'Of the file: it is what runs; `changed`: it has changed, and takes a reload (`reload.mode: manual`); `held`: it would remove much, and takes a confirmation; `refused`.',
      ),
    changed: z
      .object({
        at: z.iso.datetime(),
        error: z.string().nullable().describe('Why a reload would refuse the file as it is now.'),
      })
      .nullable()
      .describe('When the change was noticed, while no reload of it is requested; null in all other states.'),
    removal: CONFIG_REMOVAL.nullable().describe(
      'What the file would remove while it is held, or what the start has removed where that was as much. Null otherwise, and from the next reload on.',
    ),
    lastReload: z
      .object({
        at: z.iso.datetime(),
        ok: z.boolean().describe('Whether it was applied. If not, the config before it goes on.'),
        changes: CONFIG_CHANGES.nullable().describe(
          'Null for the start, and where it was refused or is held.',
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
 * Result of a reload (own clock, ms). `ok`: the file is the running config; if not, the config before it goes on. `error` has a
 * line per problem, like `check`; `retryAtMs` is the time of the next try, null where a retry is useless or unwanted. `removal`
 * of a running file: the removal of the start.
 */
export type ReloadResult =
  | { state: 'running'; ok: true; atMs: number; changes: ConfigChanges | null; removal: ConfigRemoval | null }
  | { state: 'held'; ok: false; atMs: number; removal: ConfigRemoval }
  | { state: 'refused'; ok: false; atMs: number; error: string; retryAtMs: number | null };

/** State of the file against the running config. `before`: result of the last reload. */
export type FileState =
  | ReloadResult
  | { state: 'changed'; ok: false; atMs: number; error: string | null; before: ReloadResult };

/** A reload: `confirm` is the digest of a file that may remove much. */
export type ReloadRequest = { confirm?: string | undefined };

/** Access to a daemon's config state and reload; both are null without a file. */
export type ConfigControl = {
  digest: () => string;
  fileState: () => FileState | null;
  reload: (request: ReloadRequest) => Promise<FileState | null>;
};

/** Builds the state of the running config, of the file against it, and of the last read. */
export function configStateOf({ digest, fileState }: ConfigControl): ConfigState {
  const file = fileState();
  const last = file?.state === 'changed' ? file.before : file;
  return {
    digest: digest(),
    state: file?.state ?? 'running',
    changed: file?.state === 'changed' ? { at: isoTime(file.atMs), error: file.error } : null,
    removal: file === null || !('removal' in file) ? null : file.removal,
    lastReload: last === null ? null : lastReloadOf(last),
  };
}

function lastReloadOf(last: ReloadResult): ConfigState['lastReload'] {
  const at = isoTime(last.atMs);
  const none = { ok: last.ok, changes: null, error: null, retryAt: null };
  switch (last.state) {
    case 'running':
      return { ...none, at, changes: last.changes };
    case 'held':
      return { ...none, at };
    case 'refused':
      return { ...none, at, error: last.error, retryAt: isoTimeOrNull(last.retryAtMs) };
  }
}

/** Reads and applies the config, unless held. Null when not done in time: it goes on. Throws RefusedError with every reason. */
export async function reloadConfig(
  control: ConfigControl,
  { withinMs, ...request }: ReloadRequest & { withinMs: number },
): Promise<ConfigState | null> {
  if (control.fileState() === null)
    throw new RefusedError('found a daemon that was started without a file, expected a config file');
  const result = await withTimeout(control.reload(request), withinMs);
  if (result === null) return null;
  if (result.state === 'refused') throw new RefusedError(result.error);
  return configStateOf(control);
}
