import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { ConfigRemoval } from '../operations/config-removal.ts';
import { isoTime } from '../operations/moment.ts';
import type { ConfirmationStore } from '../store/confirmations.ts';
import { largeRemoval, type Named, namedBy } from './large-removal.ts';
import { removalLine } from './reload-lines.ts';

/**
 * Reports what the file of a start removes of the `stored` config, where a reload would be held for that and nobody has
 * confirmed it. A start is not held: whoever begins a process wants it to run. Returns what is removed.
 */
export async function reportStart({
  config,
  stored,
  confirmations,
  log,
}: {
  config: Config;
  stored: Named;
  confirmations: ConfirmationStore;
  log: Logger;
}): Promise<ConfigRemoval | null> {
  const { confirmAfter } = config.reload;
  const removal = largeRemoval(stored, namedBy(config), { confirmAfter });
  if (removal === null) return null;
  const digest = await confirmations.digestOf(config);
  if (await confirmations.isConfirmed(digest)) return null;
  const reported = { at: isoTime(Date.now()), held: false, digest, confirmAfter, ...removal };
  await confirmations.report(reported);
  log.error(removalLine(reported), 'config.large_removal');
  return reported;
}
