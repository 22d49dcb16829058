import { randomBytes } from 'node:crypto';
import { type ReceiverFault, readAddedReceiver, rotatedSecrets } from '../config/added-receiver.ts';
import type { Receiver } from '../config/config.ts';
import { formatHmacSecret } from '../config/fields/signing-secret.ts';
import { isJsonObject, type JsonObject } from '../domain/json.ts';
import { parseJson } from '../domain/parse-json.ts';
import type { AddedReceiverStore, Sealing } from '../store/added-receivers.ts';
import { RefusedError, UnknownError } from './errors.ts';

/**
 * What receivers are made with while the daemon runs. `sealing` is null where the config has no key for it; `apply` has
 * this process go on with them.
 */
export type AddedReceiverParts = {
  store: AddedReceiverStore;
  sealing: Sealing | null;
  limits: () => { hasSmtp: boolean; retentionMs: number };
  apply: () => Promise<void>;
};

/** A receiver that is not as it has to be, with every place. */
export class ReceiverFaultsError extends Error {
  override readonly name = 'ReceiverFaultsError';
  readonly faults: readonly ReceiverFault[];

  constructor(faults: readonly ReceiverFault[]) {
    super(
      faults
        .map(({ place, expected }) => `${place === '' ? 'body' : `body.${place}`}: expected ${expected}`)
        .join('; '),
    );
    this.faults = faults;
  }
}

/** Makes a receiver. Throws a RefusedError where its name is taken. */
export async function addReceiver(definition: JsonObject, parts: AddedReceiverParts): Promise<Receiver> {
  const receiver = await put(definition, 'new', parts);
  if (receiver !== null) return receiver;
  throw new RefusedError(
    `found the receiver "${String(definition.name)}" already, in the config or made before; expected a new name`,
  );
}

/** Puts another receiver in the place of one. Throws an UnknownError for one that was not made through the API. */
export async function replaceReceiver(
  name: string,
  definition: JsonObject,
  parts: AddedReceiverParts,
): Promise<Receiver> {
  return (await put({ ...definition, name }, 'other', parts)) ?? refuseUnknown(name);
}

/** Changes members of a receiver; one that is null goes back to its default. */
export async function changeReceiver(
  name: string,
  changes: JsonObject,
  parts: AddedReceiverParts,
): Promise<Receiver> {
  const before = await definitionOf(name, parts);
  const merged = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null);
  return replaceReceiver(name, Object.fromEntries(merged), parts);
}

/** Removes a receiver. It keeps its backlog for the retention. */
export async function removeReceiver(name: string, { store, apply }: AddedReceiverParts): Promise<void> {
  if (!(await store.remove(name))) refuseUnknown(name);
  await apply();
}

/**
 * Has a receiver sign with another secret: `secret`, or one that is made here. Those that it had sign beside it until
 * then. Returns the secret, which is shown this once.
 */
export async function rotateSecret(
  name: string,
  { secret, untilMs, nowMs }: { secret: string | null; untilMs: number; nowMs: number },
  parts: AddedReceiverParts,
): Promise<string> {
  const before = await definitionOf(name, parts);
  const chosen = secret ?? formatHmacSecret(randomBytes(32));
  const secrets = rotatedSecrets(before, { secret: chosen, untilMs, nowMs });
  await replaceReceiver(name, { ...before, secrets }, parts);
  return chosen;
}

/** Stores a receiver, and has this process go on with it. Null where its name says that it cannot be. */
async function put(
  definition: JsonObject,
  as: 'new' | 'other',
  parts: AddedReceiverParts,
): Promise<Receiver | null> {
  const { store, limits, apply } = parts;
  const sealing = sealingOf(parts);
  const receiver = readAddedReceiver(definition, limits());
  if (Array.isArray(receiver)) throw new ReceiverFaultsError(receiver);
  const { name, type, events, filter, ordering } = receiver;
  const sealed = sealing.seal(name, JSON.stringify(definition));
  const came = await store.put({ name, type, events, filter, ordering }, { sealed, as });
  if (came !== 'stored') return null;
  await apply();
  return receiver;
}

async function definitionOf(name: string, parts: AddedReceiverParts): Promise<JsonObject> {
  const sealing = sealingOf(parts);
  const sealed = await parts.store.of(name);
  if (sealed === null) return refuseUnknown(name);
  const definition = openDefinition(name, sealed, sealing);
  if (definition !== null) return definition;
  throw new RefusedError(
    `found the receiver "${name}" sealed with another key, expected the server.secretsKey that it was made with`,
  );
}

/** What was sealed of a receiver; null where it cannot be read with this key. */
export function openDefinition(name: string, sealed: string, sealing: Sealing): JsonObject | null {
  const text = sealing.open(name, sealed);
  const definition = text === null ? null : parseJson(text);
  return definition !== null && isJsonObject(definition) ? definition : null;
}

function sealingOf({ sealing }: AddedReceiverParts): Sealing {
  if (sealing !== null) return sealing;
  throw new RefusedError(
    'found no server.secretsKey in the config, with which Redis keeps what is secret of a receiver; expected one',
  );
}

function refuseUnknown(name: string): never {
  throw new UnknownError(
    `found no receiver "${name}" that was made through the API; those of the config are changed in its file`,
  );
}
