import type { Config, ServerConfig } from '../config/config.ts';
import { withSecrets } from '../config/digest.ts';
import { isApiOn } from '../config/sections/server.ts';
import { canonicalJson } from '../domain/json.ts';
import { subjectsOf } from '../domain/subjects/subscription.ts';
import type { ConfigChanges, NamedChanges } from '../operations/config-state.ts';
import { Secret } from '../secret.ts';

/** Sections and keys that only a restart can change: the place of the state, and the address of the server. */
export const NEEDS_RESTART: readonly string[] = [
  'redis',
  'dataDir',
  'server.host',
  'server.port',
  'server.console',
  'server.secretsKey',
  'log.format',
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
    const reason = whyRestart(key, before.server, after.server);
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

function whyRestart(key: string, before: ServerConfig, after: ServerConfig): string | null {
  if (NEEDS_RESTART.includes(key) || NEEDS_RESTART.includes(key.split('.')[0] ?? '')) return OTHER_VALUE;
  if (key !== 'server.tokens') return null;
  if (before.tokens.admin.length > 0 && after.tokens.admin.length === 0) return NO_ADMIN;
  return isApiOn(before) === isApiOn(after) ? null : OTHER_VALUE;
}

/** True when two configs have the same effect. */
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
  const were = new Map(before.map((one) => [one.name, canonicalJson(withSecrets(one))]));
  const are = new Map(after.map((one) => [one.name, canonicalJson(withSecrets(one))]));
  return {
    added: [...are.keys()].filter((name) => !were.has(name)),
    removed: [...were.keys()].filter((name) => !are.has(name)),
    changed: [...are].flatMap(([name, text]) => (were.has(name) && were.get(name) !== text ? [name] : [])),
  };
}

/** Sections that are listed by themselves in the changes, and members that describe the file. */
const NO_SETTINGS = new Set([
  ...['file', 'digest', 'fingerprint', 'warnings'],
  ...['receivers', 'addedReceivers', 'subscriptions'],
]);

function changedSettings(before: Config, after: Config): string[] {
  const [were, are] = [leavesOf(before), leavesOf(after)];
  const keys = [...new Set([...were.keys(), ...are.keys()])];
  const changed = keys.filter((key) => were.get(key) !== are.get(key)).sort();
  return isReordered(before.subscriptions, after.subscriptions) ? [...changed, 'subscriptions'] : changed;
}

/** True when common subscriptions changed their order, in which metadata is merged. */
function isReordered(before: readonly { name: string }[], after: readonly { name: string }[]): boolean {
  const [were, are] = [before, after].map((list) => list.map(({ name }) => name));
  const both = new Set(were).intersection(new Set(are));
  const order = (names: readonly string[] | undefined) => names?.filter((name) => both.has(name)).join();
  return order(were) !== order(are);
}

function leavesOf(config: Config): Map<string, string> {
  const leaves = new Map<string, string>();
  for (const [section, value] of Object.entries(config)) {
    if (NO_SETTINGS.has(section)) continue;
    const key = keyOf(section);
    if (value === null || typeof value !== 'object' || Array.isArray(value) || value instanceof Secret) {
      // Two members may come from one key: the names of chains, and their endpoints.
      leaves.set(key, `${leaves.get(key) ?? ''}${canonicalJson(withSecrets(value))}`);
      continue;
    }
    for (const [name, inner] of Object.entries(value)) {
      leaves.set(`${key}.${keyOf(name)}`, canonicalJson(withSecrets(inner)));
    }
  }
  return leaves;
}

const KEYS: ReadonlyMap<string, string> = new Map([
  ['importedQuotes', 'quotes'],
  ['checkedChains', 'chains'],
  ['uncheckedTokens', 'tokens'],
  ['hasTls', 'allowInsecure'],
  ['shortestSeconds', 'shortestWait'],
  ['longestSeconds', 'longestWait'],
]);

function keyOf(name: string): string {
  return KEYS.get(name) ?? name.replace(/Ms$/, '');
}
