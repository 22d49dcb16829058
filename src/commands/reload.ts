import { Command, InvalidArgumentError } from 'commander';
import { ProblemReply } from '../client/api-client.ts';
import { REMOVED_KINDS } from '../config/sections/process.ts';
import { BadSettingError, TryAgainError } from '../exit.ts';
import type { ConfigChanges, ConfigRemoval } from '../operations/config-state.ts';
import { reload } from '../server/api/routes/config.ts';
import { clientOf, type DaemonOptions, print, withDaemon } from './daemon.ts';

type ReloadOptions = DaemonOptions & { confirm?: string };

/** `reload`: makes a running daemon read its config again, now. */
export function reloadCommand(): Command {
  return withDaemon(
    new Command('reload')
      .description('Have the daemon read its config files again and apply them: all of it, or nothing.')
      .option('--confirm <digest>', 'apply the file of this digest although it removes much', readDigest),
  ).action(run);
}

function readDigest(text: string): string {
  if (/^[0-9a-f]{32}$/.test(text)) return text;
  throw new InvalidArgumentError('expected the digest of a file that is held: 32 hex digits');
}

async function run({ confirm, ...options }: ReloadOptions): Promise<void> {
  const client = await clientOf(options);
  const { status, body, raw } = await client.call(reload, { query: { confirm } }).catch((error: unknown) => {
    // Refused: the file is wrong, or another file was confirmed. A retry does not help.
    if (error instanceof ProblemReply && error.status === 409) throw new BadSettingError(error.message);
    throw error;
  });
  // A confirmed file is held only until it is applied.
  const held = status === 202 && confirm === undefined && body.state === 'held' ? body.removal : null;
  print(options, {
    raw,
    text: () => {
      if (held !== null) return removalText(held).join('\n');
      if (status === 202) return 'it is still being applied';
      return changesText(body.lastReload?.changes ?? null).join('\n');
    },
  });
  if (held === null) return;
  const share = `${Number((held.confirmAfter * 100).toFixed(3))}%`;
  throw new TryAgainError(
    `the reload is held, for it would remove more than ${share} (reload.confirmAfter); the config before it goes on. To apply exactly this file: intentwatch reload --confirm ${held.digest}`,
  );
}

function removalText(removal: ConfigRemoval): string[] {
  return REMOVED_KINDS.flatMap((kind) => {
    const { removed, of, ids } = removal[kind];
    if (removed === 0) return [];
    const more = removed - ids.length;
    const names = [...ids, ...(more > 0 ? [`and ${more} more`] : [])];
    return [`${kind}: -${removed} of ${of}`, ...names.map((name) => `  ${name}`)];
  });
}

/** The daemon mostly applies a change of the file before a person has typed the command. */
const NOTHING = [
  'nothing has changed since the daemon last read it, which it does by itself when a file changes',
];

function changesText(changes: ConfigChanges | null): string[] {
  if (changes === null) return NOTHING;
  const { subjects, subscriptions, receivers, settings } = changes;
  const counted = [
    ...(subjects.added > 0 ? [`+${subjects.added}`] : []),
    ...(subjects.removed > 0 ? [`-${subjects.removed}`] : []),
  ];
  const named = Object.entries({ subscriptions, receivers }).flatMap(
    ([what, { added, removed, changed }]) => {
      const names = [...added.map((name) => `+${name}`), ...removed.map((name) => `-${name}`), ...changed];
      return names.length === 0 ? [] : [`${what}: ${names.join(', ')}`];
    },
  );
  const lines = [
    ...(counted.length === 0 ? [] : [`subjects: ${counted.join(', ')}`]),
    ...named,
    ...(settings.length === 0 ? [] : [`settings: ${settings.join(', ')}`]),
  ];
  return lines.length === 0 ? NOTHING : lines;
}
