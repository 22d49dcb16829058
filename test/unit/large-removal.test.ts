import { describe, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { ExpiringSecret } from '../../src/config/fields/signing-secret.ts';
import { groupByKind, largeRemoval } from '../../src/daemon/config-changes.ts';
import { withEndedSecrets } from '../../src/daemon/reloads.ts';
import { Secret } from '../../src/secret.ts';

function wallets(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, index) => `wallet:${1_000 + from + index}`);
}

const quotes = ['quote:1', 'quote:2', 'quote:3'];

describe('a removal is large', () => {
  test.each([
    ['2 of 4 wallets', wallets(4), wallets(2), false],
    ['3 of 15 wallets, which is the share', wallets(15), wallets(12), false],
    ['3 of 14 wallets', wallets(14), wallets(11), true],
    ['all 3 of 3 wallets', wallets(3), wallets(1, 9), true],
    ['3 of 100 wallets', wallets(100), wallets(97), false],
    ['3 of 4 wallets, with as many others in their place', wallets(4), wallets(4, 3), true],
    ['all 3 quotes beside 100 wallets that stay', [...wallets(100), ...quotes], wallets(100), true],
    ['3 of 15 wallets and no quote', [...wallets(15), ...quotes], [...wallets(12), ...quotes], false],
  ])('%s: %o -> %o', (_, before, after, isLarge) => {
    const removal = largeRemoval(groupByKind(before, []), groupByKind(after, []), { confirmAfter: 0.2 });
    expect(removal !== null).toBe(isLarge);
  });

  test.each([
    [['a', 'b', 'c'], ['d'], true],
    [['a', 'b', 'c'], ['a'], false],
  ])('by receivers: %o -> %o', (before, after, isLarge) => {
    const removal = largeRemoval(groupByKind([], before), groupByKind([], after), { confirmAfter: 0.2 });
    expect(removal !== null).toBe(isLarge);
  });

  test('never with 100%, and from 3 on with 0%', () => {
    const of = (confirmAfter: number, after: number) =>
      largeRemoval(groupByKind(wallets(100), []), groupByKind(wallets(after), []), { confirmAfter });
    expect([of(1, 0), of(0, 98)]).toEqual([null, null]);
    expect(of(0, 97)).toMatchObject({ wallets: { removed: 3, of: 100 } });
  });

  test('with the first 100 ids', () => {
    const removal = largeRemoval(groupByKind(wallets(300), ['a']), groupByKind(wallets(50), ['a']), {
      confirmAfter: 0.2,
    });
    expect(removal).toEqual({
      wallets: { removed: 250, of: 300, ids: wallets(100, 50) },
      subjects: { removed: 0, of: 0, ids: [] },
      receivers: { removed: 0, of: 1, ids: [] },
    });
  });
});

/** The secrets of a config: tokens by scope, and a receiver with signing secrets. */
function configOf(tokens: { read?: string; consume?: string; admin?: string[] }, secrets: Secret[] = []) {
  const secret = (text: string | undefined) => (text === undefined ? null : new Secret(text));
  const { read, consume, admin = [] } = tokens;
  const server = {
    tokens: { read: secret(read), consume: secret(consume), admin: admin.map((one) => new Secret(one)) },
  };
  const receivers = secrets.length === 0 ? [] : [{ type: 'webhook', name: 'backend', secrets }];
  return { server, receivers } as unknown as Config;
}

describe('a file that is held ends', () => {
  const ends = (before: Config, after: Config) => {
    const ended = withEndedSecrets(before, after);
    if (ended === null) return null;
    const { read, consume, admin } = ended.config.server.tokens;
    return {
      places: ended.places,
      tokens: [read, consume, ...admin].flatMap((one) => one?.reveal() ?? []),
      secrets: ended.config.receivers.flatMap((one) =>
        one.type === 'webhook' ? one.secrets.map((secret) => secret.reveal()) : [],
      ),
    };
  };

  test.each([
    ['nothing where all stay', { read: 'r', admin: ['a'] }, { read: 'r', admin: ['a'] }, null],
    ['a read token that is replaced', { read: 'r', admin: ['a'] }, { read: 's', admin: ['a'] }, ['a']],
    ['one that gets other rights', { read: 'r', admin: ['a'] }, { consume: 'r', admin: ['a'] }, ['a']],
    ['one of two admin tokens', { admin: ['a', 'b'] }, { admin: ['b', 'c'] }, ['b']],
    ['no only admin token', { admin: ['a'] }, { admin: ['b'] }, null],
    ['the read token beside it', { read: 'r', admin: ['a'] }, { admin: ['b'] }, ['a']],
    ['no last token at all', { read: 'r', consume: 'c' }, { read: 's' }, null],
    ['one of two without an admin token', { read: 'r', consume: 'c' }, { read: 'r' }, ['r']],
  ])('%s', (_, before, after, left) => {
    expect(ends(configOf(before), configOf(after))?.tokens ?? null).toEqual(left);
  });

  const [A, B, C] = [new Secret('a'), new Secret('b'), new Secret('c')];
  const ending = new ExpiringSecret('b', 1_900_000_000_000);

  test.each([
    ['a secret that is removed', [A, B], [new Secret('b')], ['b']],
    ['one that is replaced', [A, B], [B, C], ['b']],
    ['no only one', [A], [C], null],
    ['none where only one with an end remains', [A, ending], [ending, C], null],
    ['none of a receiver that the file has no more', [A, B], [], null],
  ])('%s of a receiver', (_, before, after, left) => {
    expect(ends(configOf({}, before), configOf({}, after))?.secrets ?? null).toEqual(left);
  });

  test('and names their places, never their values', () => {
    const ended = withEndedSecrets(
      configOf({ read: 'r', consume: 'c', admin: ['a', 'b'] }, [A, B]),
      configOf({ admin: ['b'] }, [B]),
    );
    expect(ended?.places).toEqual([
      'server.tokens.read',
      'server.tokens.consume',
      'server.tokens.admin',
      'receivers.backend',
    ]);
  });
});
