import type { Config } from '../config/config.ts';
import { ExpiringSecret } from '../config/fields/signing-secret.ts';
import { isApiOn } from '../config/sections/server.ts';
import { canonicalJson, type JsonValue } from '../domain/json.ts';
import { subjectsOf } from '../domain/subjects/subscription.ts';
import type { ConfigChanges, NamedChanges } from '../operations/config-state.ts';
import { Secret } from '../secret.ts';

/** What only a restart can change: where the state is, and where the daemon serves; a section, or a key. */
export const NEEDS_RESTART: readonly string[] = [
  'redis',
  'dataDir',
  'server.host',
  'server.port',
  'server.console',
  'server.secretsKey',
  'log.format',
];

/** A config that differs in what a restart takes. */
export class RestartNeededError extends Error {
  override readonly name = 'RestartNeededError';
  readonly code = 'restart-needed';
  readonly retryable = false;
  readonly keys: readonly string[];

  constructor(file: string, keys: readonly string[]) {
    super(
      keys
        .map(
          (key) =>
            `${file}: ${key}: found another value than the daemon was started with, expected the same until a restart`,
        )
        .join('\n'),
    );
    this.keys = keys;
  }
}

/** What differs in `after`. Throws a RestartNeededError that names every key that cannot change while it runs. */
export function changesBetween(before: Config, after: Config): ConfigChanges {
  const settings = changedSettings(before, after);
  const fixed = settings.filter(
    (key) =>
      NEEDS_RESTART.includes(key) ||
      NEEDS_RESTART.includes(key.split('.')[0] ?? '') ||
      (key === 'server.tokens' && isApiOn(before.server) !== isApiOn(after.server)),
  );
  if (fixed.length > 0) throw new RestartNeededError(after.file, fixed);
  const [were, are] = [subjectSet(before), subjectSet(after)];
  return {
    subjects: { added: are.difference(were).size, removed: were.difference(are).size },
    subscriptions: namedChanges(before.subscriptions, after.subscriptions),
    receivers: namedChanges(before.receivers, after.receivers),
    settings,
  };
}

/** Whether two configs are the same in effect. */
export function isEmpty({ subjects, subscriptions, receivers, settings }: ConfigChanges): boolean {
  const named = [subscriptions, receivers].flatMap(({ added, removed, changed }) => [
    ...added,
    ...removed,
    ...changed,
  ]);
  return subjects.added + subjects.removed + named.length + settings.length === 0;
}

function subjectSet({ subscriptions }: Config): Set<string> {
  return new Set(subscriptions.flatMap(subjectsOf));
}

function namedChanges(before: readonly { name: string }[], after: readonly { name: string }[]): NamedChanges {
  const were = new Map(before.map((one) => [one.name, canonicalJson(comparable(one))]));
  const are = new Map(after.map((one) => [one.name, canonicalJson(comparable(one))]));
  return {
    added: [...are.keys()].filter((name) => !were.has(name)),
    removed: [...were.keys()].filter((name) => !are.has(name)),
    changed: [...are].flatMap(([name, text]) => (were.has(name) && were.get(name) !== text ? [name] : [])),
  };
}

/** What stands for itself in the changes, and what belongs to the file. */
const NO_SETTINGS = new Set(['file', 'digest', 'receivers', 'addedReceivers', 'subscriptions', 'warnings']);

function changedSettings(before: Config, after: Config): string[] {
  const [were, are] = [leavesOf(before), leavesOf(after)];
  const keys = [...new Set([...were.keys(), ...are.keys()])];
  const changed = keys.filter((key) => were.get(key) !== are.get(key)).sort();
  return isReordered(before.subscriptions, after.subscriptions) ? [...changed, 'subscriptions'] : changed;
}

/** Whether what both have stands in another order: metadata merges in that of the subscriptions. */
function isReordered(before: readonly { name: string }[], after: readonly { name: string }[]): boolean {
  const [were, are] = [before, after].map((list) => list.map(({ name }) => name));
  const both = new Set(were).intersection(new Set(are));
  const order = (names: readonly string[] | undefined) => names?.filter((name) => both.has(name)).join();
  return order(were) !== order(are);
}

/** The settings by their keys in the file; a list is one setting. */
function leavesOf(config: Config): Map<string, string> {
  const leaves = new Map<string, string>();
  for (const [section, value] of Object.entries(config)) {
    if (NO_SETTINGS.has(section)) continue;
    const key = keyOf(section);
    if (value === null || typeof value !== 'object' || Array.isArray(value) || value instanceof Secret) {
      // Of one key two members may be made: the names of chains, and their endpoints.
      leaves.set(key, `${leaves.get(key) ?? ''}${canonicalJson(comparable(value))}`);
      continue;
    }
    for (const [name, inner] of Object.entries(value)) {
      leaves.set(`${key}.${keyOf(name)}`, canonicalJson(comparable(inner)));
    }
  }
  return leaves;
}

/** Members of the config that have another name than what they are read from. */
const KEYS: ReadonlyMap<string, string> = new Map([
  ['handedQuotes', 'quotes'],
  ['checkedChains', 'chains'],
  ['uncheckedTokens', 'tokens'],
  ['hasTls', 'allowInsecure'],
  ['shortestSeconds', 'shortestWait'],
  ['longestSeconds', 'longestWait'],
]);

/** What a member of the config is called in the file. */
function keyOf(name: string): string {
  return KEYS.get(name) ?? name.replace(/Ms$/, '');
}

/** A value with its secrets, to be compared and never shown. */
function comparable(value: unknown): JsonValue {
  if (value instanceof ExpiringSecret) return [value.reveal(), value.untilMs];
  if (value instanceof Secret) return [value.reveal()];
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, comparable(inner)]));
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}
