import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { ConfigRemoval } from '../operations/config-removal.ts';
import { isoTime } from '../operations/moment.ts';
import type { ConfirmationStore } from '../store/confirmations.ts';
import type { Registry } from '../store/registry.ts';
import { largeRemoval, named, namedBy } from './large-removal.ts';
import { removalLine } from './reload-lines.ts';

/**
 * Reports what the file of a start removes of the config in Redis, before it is removed, where a reload would be held for that and nobody has
 * confirmed it. A start is not held: whoever begins a process wants it to run. Returns what is removed.
 */
export async function reportStart({
  config,
  registry,
  confirmations,
  log,
}: {
  config: Config;
  registry: Registry;
  confirmations: ConfirmationStore;
  log: Logger;
}): Promise<ConfigRemoval | null> {
  const { confirmAfter } = config.reload;
  const { subjects, receivers } = await registry.named();
  const removal = largeRemoval(named(subjects, receivers), namedBy(config), { confirmAfter });
  if (removal === null) return null;
  const digest = await confirmations.digestOf(config);
  if (await confirmations.isConfirmed(digest)) return null;
  const reported = { at: isoTime(Date.now()), held: false, digest, confirmAfter, ...removal };
  await confirmations.report(reported);
  log.error(removalLine(reported), 'config.large_removal');
  return reported;
}
