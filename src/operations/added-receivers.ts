import { randomBytes } from 'node:crypto';
import {
  type AddedReceiverRules,
  type ReceiverFault,
  readAddedReceiver,
  rotatedSecrets,
} from '../config/added-receiver.ts';
import type { Receiver } from '../config/config.ts';
import { formatHmacSecret, MOST_SECRETS } from '../config/fields/signing-secret.ts';
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { type AddedReceiverStore, type Encryption, MOST_ADDED, type Put } from '../store/added-receivers.ts';
import { RefusedError, UnknownError } from './operation.ts';
import type { OriginOf } from './receivers.ts';

/** Dependencies: `encryption` is null without a key, `apply` makes this process use the receivers, `originOf` reads an origin. */
export type AddedReceiverDeps = {
  store: AddedReceiverStore;
  encryption: Encryption | null;
  rules: () => AddedReceiverRules;
  apply: () => Promise<void>;
  originOf: OriginOf;
};

/** Error for an invalid receiver, with every fault. */
export class ReceiverFaultsError extends Error {
  override readonly name = 'ReceiverFaultsError';
  readonly faults: readonly ReceiverFault[];

  constructor(faults: readonly ReceiverFault[]) {
    super(faults.map((fault) => `body${fault.place === '' ? '' : '.'}${describeFault(fault)}`).join('; '));
    this.faults = faults;
  }
}

/** Describes a fault in one line: the member, the found value where that can be shown, and the expected one. */
export function describeFault({ place, found, expected }: ReceiverFault): string {
  return `${place}: ${found === undefined ? '' : `found ${found}, `}expected ${expected}`;
}

/** Adds a receiver. Throws a RefusedError where its name is in use, or there are too many. */
export async function addReceiver(definition: JsonObject, deps: AddedReceiverDeps): Promise<Receiver> {
  const receiver = await put(definition, { as: 'new', before: null }, deps);
  if (typeof receiver === 'object') return receiver;
  if (receiver === 'full') {
    throw new RefusedError(
      `found ${MOST_ADDED} receivers that were made through the API, expected fewer before one is added: remove one`,
    );
  }
  throw new RefusedError(
    `found the receiver "${String(definition.name)}" already, in the config or made before; expected a new name`,
  );
}

/** Replaces a receiver. Throws an UnknownError for one that was not added through the API. */
export async function replaceReceiver(
  name: string,
  definition: JsonObject,
  deps: AddedReceiverDeps,
): Promise<Receiver> {
  if (definition.name !== undefined && definition.name !== name)
    throw new ReceiverFaultsError([{ place: 'name', expected: `"${name}", or none: a name cannot change` }]);
  const receiver = await put({ ...definition, name }, { as: 'other', before: null }, deps);
  return typeof receiver === 'string' ? refuseUnknown(name) : receiver;
}

/** Changes members of a receiver; a null resets one to its default. */
export async function changeReceiver(
  name: string,
  changes: JsonObject,
  deps: AddedReceiverDeps,
): Promise<Receiver> {
  return update(
    name,
    (before) => {
      const faults = staleSecrets(before, changes);
      if (faults.length > 0) throw new ReceiverFaultsError(faults);
      return Object.fromEntries(
        Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null),
      );
    },
    deps,
  );
}

const SECRET_MEMBERS = ['headers', 'secrets'];

/** The stored secrets that a change would send to another origin, or through another proxy. */
function staleSecrets(before: JsonObject, changes: JsonObject): ReceiverFault[] {
  const isMoved = ['url', 'proxy'].some(
    (member) =>
      changes[member] !== undefined && originText(changes[member]) !== originText(before[member] ?? null),
  );
  if (!isMoved) return [];
  return SECRET_MEMBERS.filter((member) => before[member] !== undefined && changes[member] === undefined).map(
    (member) => ({
      place: member,
      expected: 'it anew, or null: stored ones are not sent to another origin or through another proxy',
    }),
  );
}

function originText(value: JsonValue): string {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  return url === null ? JSON.stringify(value) : `${url.protocol}//${url.host}`;
}

/** Removes a receiver. Its backlog is stored for the retention. */
export async function removeReceiver(name: string, { store, apply }: AddedReceiverDeps): Promise<void> {
  if (!(await store.remove(name))) refuseUnknown(name);
  await apply();
}

/**
 * Rotates a receiver's secret to `secret`, or to a new random one. The former secrets still sign until `untilMs`. Returns the
 * secret, which is shown this once. Throws a RefusedError where too many still sign.
 */
export async function rotateSecret(
  name: string,
  { secret, untilMs, nowMs }: { secret: string | null; untilMs: number; nowMs: number },
  deps: AddedReceiverDeps,
): Promise<string> {
  const chosen = secret ?? formatHmacSecret(randomBytes(32));
  const rotated = (before: JsonObject): JsonObject => {
    const secrets = rotatedSecrets(before, { secret: chosen, untilMs, nowMs });
    if (secrets.length <= MOST_SECRETS) return { ...before, secrets };
    throw new RefusedError(
      `found ${MOST_SECRETS} secrets with which "${name}" signs, expected fewer: the first to end frees a place`,
    );
  };
  await update(name, rotated, deps);
  return chosen;
}

const MOST_TRIES = 20;

/** Changes a receiver from its stored definition: of two concurrent changes neither is lost. */
async function update(
  name: string,
  change: (before: JsonObject) => JsonObject,
  deps: AddedReceiverDeps,
): Promise<Receiver> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const { encrypted, definition } = await storedOf(name, deps);
    const options = { as: 'other', before: encrypted } as const;
    const receiver = await put({ ...change(definition), name }, options, deps);
    if (receiver === 'missing') return refuseUnknown(name);
    if (typeof receiver === 'object') return receiver;
  }
  throw new RefusedError(`found the receiver "${name}" changed again and again meanwhile; try again`);
}

/** Stores a receiver, and makes this process use it; returns the reason where that is impossible. */
async function put(
  definition: JsonObject,
  { as, before }: { as: 'new' | 'other'; before: string | null },
  deps: AddedReceiverDeps,
): Promise<Receiver | Exclude<Put, 'stored'>> {
  const { store, rules, apply } = deps;
  const encryption = encryptionOf(deps);
  const receiver = readAddedReceiver(definition, rules());
  if (Array.isArray(receiver)) throw new ReceiverFaultsError(receiver);
  const { name, type, events, filter, ordering } = receiver;
  const encrypted = encryption.encrypt(name, JSON.stringify(definition));
  const came = await store.put({ name, type, events, filter, ordering }, { encrypted, as, before });
  if (came !== 'stored') return came;
  await apply();
  return receiver;
}

async function storedOf(
  name: string,
  deps: AddedReceiverDeps,
): Promise<{ encrypted: string; definition: JsonObject }> {
  const encrypted = await deps.store.of(name);
  if (encrypted === null) return refuseUnknown(name);
  const definition = openDefinition(name, encrypted, encryptionOf(deps));
  if (definition !== null) return { encrypted, definition };
  throw new RefusedError(
    `found the receiver "${name}" encrypted with another key, expected the server.secretsKey that it was made with`,
  );
}

/** Decrypts the definition of a receiver; null where this key cannot read it. */
export function openDefinition(name: string, encrypted: string, encryption: Encryption): JsonObject | null {
  const text = encryption.decrypt(name, encrypted);
  const definition = text === null ? null : parseJson(text, { limits: LIMITS.api });
  return definition !== null && isJsonObject(definition) ? definition : null;
}

function encryptionOf({ encryption }: AddedReceiverDeps): Encryption {
  if (encryption !== null) return encryption;
  throw new RefusedError(
    'found no server.secretsKey in the config, which encrypts the secrets of receivers in Redis; expected one',
  );
}

function refuseUnknown(name: string): never {
  throw new UnknownError(
    `found no receiver "${name}" that was made through the API; those of the config are changed in its file`,
  );
}
