import type { Logger } from 'pino';
import { type Config, type ServerConfig, withSecrets } from '../config/config.ts';
import { REMOVED_KINDS, type RemovedKind } from '../config/sections/process.ts';
import { isApiOn } from '../config/sections/server.ts';
import { canonicalJson } from '../domain/json.ts';
import { subjectsOf } from '../domain/subjects/subscription.ts';
import type { ConfigChanges, ConfigRemoval, NamedChanges } from '../operations/config-state.ts';
import { isoTime } from '../operations/time.ts';
import { Secret } from '../secret.ts';
import type { ConfirmationStore } from '../store/confirmations.ts';
import type { Registry } from '../store/registry.ts';

/** Sections and keys that only a restart can change: where data is stored, how the server listens, and in which plan transfers are. */
export const NEEDS_RESTART: readonly string[] = [
  'redis',
  'dataDir',
  'server.host',
  'server.port',
  'server.console',
  'server.secretsKey',
  'log.format',
  'upstream.statusSource',
];

/** Error for a config whose changes need a restart. */
export class RestartNeededError extends Error {
  override readonly name = 'RestartNeededError';
  readonly code = 'restart-needed';
  readonly retryable = false;
  readonly keys: readonly string[];

  constructor(file: string, reasons: ReadonlyMap<string, string>) {
    super([...reasons].map(([key, reason]) => `${file}: ${key}: ${reason}`).join('\n'));
    this.keys = [...reasons.keys()];
  }
}

const OTHER_VALUE = 'found another value than the daemon was started with, expected the same until a restart';
const NO_ADMIN =
  'found no admin token (server.token, server.tokens.admin), expected one until a restart: no reload removes the last';

/** Compares two configs. Throws a RestartNeededError that names every key that cannot change at runtime. */
export function changesBetween(before: Config, after: Config): ConfigChanges {
  const settings = changedSettings(before, after);
  const fixed = settings.flatMap((key) => {
    const reason = restartReason(key, before.server, after.server);
    return reason === null ? [] : [[key, reason] as const];
  });
  if (fixed.length > 0) throw new RestartNeededError(after.file, new Map(fixed));
  const [were, are] = [subjectSet(before), subjectSet(after)];
  return {
    subjects: { added: are.difference(were).size, removed: were.difference(are).size },
    subscriptions: namedChanges(before.subscriptions, after.subscriptions),
    receivers: namedChanges(before.receivers, after.receivers),
    settings,
  };
}

function restartReason(key: string, before: ServerConfig, after: ServerConfig): string | null {
  if (NEEDS_RESTART.includes(key) || NEEDS_RESTART.includes(key.split('.')[0] ?? '')) return OTHER_VALUE;
  if (key !== 'server.tokens') return null;
  if (before.tokens.admin.length > 0 && after.tokens.admin.length === 0) return NO_ADMIN;
  return isApiOn(before) === isApiOn(after) ? null : OTHER_VALUE;
}

/** True when two configs have the same effect. */
export function isEmpty({ subjects, subscriptions, receivers, settings }: ConfigChanges): boolean {
  const entries = [subscriptions, receivers].flatMap(({ added, removed, changed }) => [
    ...added,
    ...removed,
    ...changed,
  ]);
  return subjects.added + subjects.removed + entries.length + settings.length === 0;
}

function subjectSet({ subscriptions }: Config): Set<string> {
  return new Set(subscriptions.flatMap(subjectsOf));
}

function namedChanges(before: readonly { name: string }[], after: readonly { name: string }[]): NamedChanges {
  const were = new Map(before.map((one) => [one.name, canonicalJson(withSecrets(one))]));
  const are = new Map(after.map((one) => [one.name, canonicalJson(withSecrets(one))]));
  return {
    added: [...are.keys()].filter((name) => !were.has(name)),
    removed: [...were.keys()].filter((name) => !are.has(name)),
    changed: [...are].flatMap(([name, text]) => (were.has(name) && were.get(name) !== text ? [name] : [])),
  };
}

/** Members of a config that are no settings: facts about its file, and lists whose changes are reported by name. */
const NOT_SETTINGS = new Set([
  ...['file', 'digest', 'fingerprint', 'warnings'],
  ...['receivers', 'addedReceivers', 'subscriptions'],
]);

function changedSettings(before: Config, after: Config): string[] {
  const [were, are] = [leavesOf(before), leavesOf(after)];
  const keys = [...new Set([...were.keys(), ...are.keys()])];
  const changed = keys.filter((key) => were.get(key) !== are.get(key)).sort();
  return isReordered(before.subscriptions, after.subscriptions) ? [...changed, 'subscriptions'] : changed;
}

/** True when the subscriptions that both configs have changed their order: metadata is merged in that order. */
function isReordered(before: readonly { name: string }[], after: readonly { name: string }[]): boolean {
  const [were, are] = [before, after].map((list) => list.map(({ name }) => name));
  const both = new Set(were).intersection(new Set(are));
  const order = (names: readonly string[] | undefined) => names?.filter((name) => both.has(name)).join();
  return order(were) !== order(are);
}

function leavesOf(config: Config): Map<string, string> {
  const leaves = new Map<string, string>();
  for (const [section, value] of Object.entries(config)) {
    if (NOT_SETTINGS.has(section)) continue;
    const key = configKeyOf(section);
    if (value === null || typeof value !== 'object' || Array.isArray(value) || value instanceof Secret) {
      // One key may set two members: `chains` sets the names of chains, and their endpoints.
      leaves.set(key, `${leaves.get(key) ?? ''}${canonicalJson(withSecrets(value))}`);
      continue;
    }
    for (const [name, inner] of Object.entries(value)) {
      leaves.set(`${key}.${configKeyOf(name)}`, canonicalJson(withSecrets(inner)));
    }
  }
  return leaves;
}

/** Keys of the config file whose members have other names in the program. */
const CONFIG_KEYS: ReadonlyMap<string, string> = new Map([
  ['importedQuotes', 'quotes'],
  ['checkedChains', 'chains'],
  ['uncheckedTokens', 'tokens'],
  ['hasTls', 'allowInsecure'],
  ['shortestSeconds', 'shortestWait'],
  ['longestSeconds', 'longestWait'],
]);

function configKeyOf(name: string): string {
  return CONFIG_KEYS.get(name) ?? name.replace(/Ms$/, '');
}

/** Fewer removals need no confirmation, whatever their share: one of four wallets is a quarter. */
const LEAST_LARGE_REMOVAL = 3;

const MOST_IDS = 100;

type Names = Readonly<Record<RemovedKind, ReadonlySet<string>>>;

/** Collects the ids of subjects and the names of receivers in a config file, without those that were added through the API. */
export function namesOf({ subscriptions, receivers }: Config): Names {
  return groupByKind(
    subscriptions.flatMap(subjectsOf),
    receivers.map(({ name }) => name),
  );
}

/** Groups ids of subjects and names of receivers by kind. */
export function groupByKind(subjects: readonly string[], receivers: readonly string[]): Names {
  const isWallet = (id: string): boolean => id.startsWith('wallet:');
  return {
    wallets: new Set(subjects.filter(isWallet)),
    subjects: new Set(subjects.filter((id) => !isWallet(id))),
    receivers: new Set(receivers),
  };
}

/** The names that `after` lacks, if it lacks more than the share `confirmAfter` of any kind; null otherwise. */
export function largeRemoval(
  before: Names,
  after: Names,
  { confirmAfter }: { confirmAfter: number },
): Pick<ConfigRemoval, RemovedKind> | null {
  const gone = (kind: RemovedKind) => before[kind].difference(after[kind]);
  const isLarge = REMOVED_KINDS.some((kind) => {
    const count = gone(kind).size;
    return count >= LEAST_LARGE_REMOVAL && count > confirmAfter * before[kind].size;
  });
  if (!isLarge) return null;
  const of = (kind: RemovedKind) => {
    const ids = [...gone(kind)].sort();
    return { removed: ids.length, of: before[kind].size, ids: ids.slice(0, MOST_IDS) };
  };
  return { wallets: of('wallets'), subjects: of('subjects'), receivers: of('receivers') };
}

const MOST_LOGGED = 20;

/** Formats changes for the log, without empty parts and with shortened lists. */
export function changesLine({ subjects, subscriptions, receivers, settings }: ConfigChanges): object {
  const lists = { subscriptions, receivers };
  const lines = Object.entries(lists).flatMap(([what, changes]) =>
    Object.entries(changes).flatMap(([how, names]) =>
      names.length === 0 ? [] : [[`${what}_${how}`, shortened(names, names.length)] as const],
    ),
  );
  return { subjects, ...Object.fromEntries(lines), ...(settings.length === 0 ? {} : { settings }) };
}

/** Formats a removal for the log: per kind the counts and the first ids. */
export function removalLine(removal: ConfigRemoval): object {
  const { digest, held, confirmAfter } = removal;
  const kinds = REMOVED_KINDS.flatMap((kind) => {
    const { removed, of, ids } = removal[kind];
    return removed === 0 ? [] : [[kind, { removed, of, ids: shortened(ids, removed) }] as const];
  });
  return { held, digest, confirmAfter, ...Object.fromEntries(kinds) };
}

function shortened(names: readonly string[], count: number): string[] {
  if (count <= MOST_LOGGED) return [...names];
  return [...names.slice(0, MOST_LOGGED), `and ${count - MOST_LOGGED} more`];
}

/**
 * Reports a large removal at a start: entries in Redis that the config file lacks. A reload would wait for a confirmation. A
 * start does not, because its operator wants the process to run. Returns the removal; null if it is small or confirmed.
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
  const removal = largeRemoval(groupByKind(subjects, receivers), namesOf(config), { confirmAfter });
  if (removal === null) return null;
  const digest = await confirmations.digestOf(config);
  if (await confirmations.isConfirmed(digest)) return null;
  const reported = { at: isoTime(Date.now()), held: false, digest, confirmAfter, ...removal };
  await confirmations.report(reported);
  log.error(removalLine(reported), 'config.large_removal');
  return reported;
}
