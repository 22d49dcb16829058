import type { Config, Receiver, ServerConfig } from '../config/config.ts';
import { ExpiringSecret } from '../config/fields/signing-secret.ts';
import type { Secret } from '../secret.ts';

/** A config without the secrets that a held file ends, and where they were: `server.tokens.read`, `receivers.backend`. */
export type EndedSecrets = { config: Config; places: string[] };

/**
 * What a held reload does nevertheless: a token or a signing secret that the file removes or replaces in an entry that it
 * still has ends at once, for it may be known to somebody who must not use it. An entry that would have none keeps all.
 * What the file adds waits for the confirmation. Null where nothing ends.
 */
export function withEndedSecrets(running: Config, file: Config): EndedSecrets | null {
  const [tokens, tokenPlaces] = endedTokens(running.server.tokens, file.server.tokens);
  const wanted = new Map(file.receivers.map((receiver) => [receiver.name, receiver]));
  const places = [...tokenPlaces];
  const receivers = running.receivers.map((receiver) => {
    const after = wanted.get(receiver.name);
    const secrets = after === undefined ? null : leftSecrets(receiver, after);
    if (secrets === null || receiver.type !== 'webhook') return receiver;
    places.push(`receivers.${receiver.name}`);
    return { ...receiver, secrets };
  });
  if (places.length === 0) return null;
  return { config: { ...running, server: { ...running.server, tokens }, receivers }, places };
}

type Tokens = ServerConfig['tokens'];

/** Without any token the API would be open to the whole machine, and without an admin token nobody could reload. */
function endedTokens(before: Tokens, after: Tokens): [Tokens, string[]] {
  const admin = leftOf(before.admin, after.admin);
  const ends = (scope: 'read' | 'consume'): boolean =>
    before[scope] !== null && before[scope].reveal() !== after[scope]?.reveal();
  const left: Tokens = {
    read: ends('read') ? null : before.read,
    consume: ends('consume') ? null : before.consume,
    admin: admin.length === 0 ? before.admin : admin,
  };
  if (left.read === null && left.consume === null && left.admin.length === 0) return [before, []];
  const places = [
    ...(left.read === before.read ? [] : ['server.tokens.read']),
    ...(left.consume === before.consume ? [] : ['server.tokens.consume']),
    ...(left.admin.length === before.admin.length ? [] : ['server.tokens.admin']),
  ];
  return [left, places];
}

/** The secrets that a receiver goes on to sign with; null where none ends. One that has an end itself is not enough. */
function leftSecrets(before: Receiver, after: Receiver): Secret[] | null {
  if (before.type !== 'webhook' || after.type !== 'webhook') return null;
  const left = leftOf(before.secrets, after.secrets);
  const signs = left.some((secret) => !(secret instanceof ExpiringSecret));
  return signs && left.length < before.secrets.length ? left : null;
}

function leftOf(before: readonly Secret[], after: readonly Secret[]): Secret[] {
  const kept = new Set(after.map((secret) => secret.reveal()));
  return before.filter((secret) => kept.has(secret.reveal()));
}
