import { Command } from 'commander';
import { ProblemReply } from '../client/api-client.ts';
import { BadSettingError } from '../exit.ts';
import type { ConfigChanges } from '../operations/config-state.ts';
import { reload } from '../server/api/routes/config.ts';
import { clientOf, type DaemonOptions, print, withDaemon } from './daemon.ts';

/** `reload`: has a running daemon read its config again, now. */
export function reloadCommand(): Command {
  return withDaemon(
    new Command('reload').description(
      'Have the daemon read its config files again and apply them: all of it, or nothing.',
    ),
  ).action(run);
}

async function run(options: DaemonOptions): Promise<void> {
  const client = await clientOf(options);
  const { status, body, raw } = await client.ask(reload).catch((error: unknown) => {
    // Refused: the file is wrong, and another try changes nothing.
    if (error instanceof ProblemReply && error.status === 409) throw new BadSettingError(error.message);
    throw error;
  });
  print(options, {
    raw,
    text: () => {
      if (status === 202) return 'it is still being applied';
      return changesText(body.lastReload?.changes ?? null).join('\n');
    },
  });
}

/** A change of the file is mostly applied before anybody has typed the command. */
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
