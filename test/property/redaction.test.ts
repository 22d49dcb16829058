import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loggedStatus, loggedType, withoutPrivateWords } from '../../src/log.ts';
import { limiterWithout } from '../../src/notifiers/printable.ts';
import { secretsOfHeader, secretsOfLogin, secretsOfUrl } from '../../src/redact.ts';
import { Secret } from '../../src/secret.ts';
import { excerptWithout } from '../../src/upstream/http/transport.ts';

const RUNS = { numRuns: 300 };

const each = (text: string, spell: (character: string) => string): string =>
  [...text].map((character) => spell(character)).join('');
const hexOf = (character: string, digits: number): string =>
  (character.codePointAt(0) ?? 0).toString(16).padStart(digits, '0');

/** The characters of a base64 text that depend on nothing but the secret, with this number of bytes before it. */
const ownOf = (encoded: string, { before, secret }: { before: number; secret: string }): string =>
  encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + Buffer.byteLength(secret)) * 8) / 6));

/** Ways in which servers repeat their input. */
const SPELLINGS: Readonly<Record<string, (secret: string) => string>> = {
  plain: (secret) => secret,
  'upper case': (secret) => secret.toUpperCase(),
  JSON: (secret) => JSON.stringify(secret).slice(1, -1),
  'JSON of PHP': (secret) => JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/'),
  'JSON in units': (secret) => each(secret, (character) => `\\u${hexOf(character, 4)}`),
  'HTML by names': (secret) =>
    each(
      secret,
      (mark) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' })[mark] ?? mark,
    ),
  'HTML by numbers': (secret) => each(secret, (character) => `&#${character.codePointAt(0)};`),
  'HTML by hexadecimal': (secret) => each(secret, (character) => `&#x${hexOf(character, 2)};`),
  percent: (secret) => encodeURIComponent(secret),
  'percent, all of it': (secret) => each(secret, (character) => `%${hexOf(character, 2)}`),
  'percent twice': (secret) => encodeURIComponent(encodeURIComponent(secret)),
  'JSON in HTML in percent': (secret) =>
    encodeURIComponent(JSON.stringify(secret).slice(1, -1).replaceAll('"', '&quot;').replaceAll('/', '\\/')),
  base64: (secret) => Buffer.from(secret).toString('base64'),
  'base64 of a login': (secret) => Buffer.from(`user:${secret}`).toString('base64'),
  'base64 of AUTH PLAIN': (secret) => Buffer.from(`\0someone\0${secret}`).toString('base64'),
  'base64 for URLs, amid others': (secret) => Buffer.from(`ab${secret}cde`).toString('base64url'),
  hexadecimal: (secret) => Buffer.from(secret).toString('hex'),
};

const BEFORE: Readonly<Record<string, number>> = {
  'base64 of a login': 5,
  'base64 of AUTH PLAIN': 9,
  'base64 for URLs, amid others': 2,
};

const secrets = fc.string({
  unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~+/=&<>"\'%\\!'),
  minLength: 12,
  maxLength: 64,
});
/** Nothing in here is a part of a secret. */
const around = fc.string({
  unit: fc.constantFrom(' ', '§', '{', '}', '\n', 'é', '\u{1f600}'),
  maxLength: 1_200,
});

/** Texts that must not appear: any half of the secret, spelled; in base64 any half of its own characters. */
function halves(name: string, secret: string): string[] {
  const spell = SPELLINGS[name] ?? String;
  if (!name.startsWith('base64')) return windows(secret).map(spell);
  return windows(ownOf(spell(secret), { before: BEFORE[name] ?? 0, secret }));
}

function windows(text: string): string[] {
  const size = Math.ceil(text.length / 2);
  return Array.from({ length: text.length - size + 1 }, (_, at) => text.slice(at, at + size));
}

function isSeen(shown: string, pieces: readonly string[]): boolean {
  const text = shown.toLowerCase();
  return pieces.some((piece) => text.includes(piece.toLowerCase()));
}

describe.each(Object.entries(SPELLINGS))('a secret spelled as %s', (name, spell) => {
  test('is in no stored text, at any place of the text and with any cut', () => {
    fc.assert(
      fc.property(secrets, around, around, fc.nat(), (secret, before, after, at) => {
        const spelling = spell(secret);
        const text = `${before}${spelling}${after}`;
        const pieces = halves(name, secret);
        const limiter = limiterWithout([secret]);
        const cutAt = before.length + (at % (spelling.length + 1));
        for (const shown of [
          limiter.answer(text),
          limiter.reason(text),
          limiter.answer(text.slice(0, cutAt), { cut: true }),
          excerptWithout({ apiKey: new Secret(secret), proxy: null })(text, 120),
        ]) {
          expect(isSeen(shown, pieces), `${shown} shows ${spelling}`).toBe(false);
        }
      }),
      RUNS,
    );
  });
});

test('a plain token that a cut ends shows less than 4 characters of it', () => {
  fc.assert(
    fc.property(secrets, around, fc.nat(), (secret, before, at) => {
      const length = 4 + (at % (secret.length - 4));
      const shown = limiterWithout([secret]).answer(`${before} ${secret.slice(0, length)}`, { cut: true });
      expect(shown.endsWith(secret.slice(0, 4))).toBe(false);
      expect(shown.toLowerCase()).not.toContain(secret.slice(0, 4).toLowerCase());
    }),
    RUNS,
  );
});

test.each([
  ['aaaaa"aaaaaaaa', 'aaaaa%5C%26qu'],
  ['abcdefg&hijklmnop', 'abcdefg%2526am'],
  ['abcdefg/hijklmnop', 'abcdefg%5C%2'],
])('%s, cut within an escape of an escape, is hidden: %s', (secret, cut) => {
  expect(limiterWithout([secret]).answer(`found ${cut}`, { cut: true })).toBe('found [secret]');
});

test('a text without a secret does not change', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'abc %\\/&;#x41'), maxLength: 300 }), (text) => {
      const limiter = limiterWithout(['ZZZZZZZZZZZZZZZZ']);
      expect(limiter.answer(text)).toBe(limiterWithout([]).answer(text));
    }),
    RUNS,
  );
});

test('a login is hidden as it is sent, user and all', () => {
  const { answer } = limiterWithout(secretsOfLogin(new URL('smtp://apikey:s3cr%2Ft@mail.example.com')));
  const plain = Buffer.from('\0apikey\0s3cr/t').toString('base64');
  expect(answer(`501 AUTH PLAIN ${plain} ${Buffer.from('s3cr/t').toString('base64')} s3cr/t s3cr%2Ft`)).toBe(
    '501 AUTH PLAIN [secret] [secret] [secret] [secret]',
  );
});

test('a login in a header is hidden as the server reads it', () => {
  const login = Buffer.from('team:s3cret pass').toString('base64');
  const { answer } = limiterWithout(secretsOfHeader(`Basic ${login}`));
  expect(answer(`no such user: team:s3cret pass (${login})`)).toBe('no such user: [secret] ([secret])');
  expect(answer('wrong password "s3cret pass"')).toBe('wrong password "[secret]"');
});

test('a token in the place of the user of a URL is hidden, also as it is sent', () => {
  const { answer } = limiterWithout(secretsOfUrl(new URL('http://0123456789abcdef:@proxy.example.com:3128')));
  const sent = Buffer.from('0123456789abcdef:').toString('base64');
  expect(answer(`407 for 0123456789abcdef, Basic ${sent}`)).toBe('407 for [secret], Basic [secret]');
});

describe('a log line', () => {
  const words = fc.string({
    unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789-_.~+'),
    minLength: 12,
    maxLength: 40,
  });

  test('shows no mail address and no marked secret, with any text around them', () => {
    fc.assert(
      fc.property(
        words,
        fc.constantFrom('whsec_', 'whsk_', 'sk_', 'ghp_', 'eyJhbGciOi.'),
        fc.constantFrom(' ', '"', '/', '=', ':', ',', '<'),
        (word, start, cutoff) => {
          const texts = [`${start}${word}`, `${word}@example.com`].map(
            (text) => `a${cutoff}${text}${cutoff}b`,
          );
          for (const text of texts) {
            expect(withoutPrivateWords(text)).not.toContain(word);
            expect(loggedStatus(text)).not.toContain(word);
          }
        },
      ),
      RUNS,
    );
  });

  test.each(['filled', 'in_flight', 'PARTIALLY-FILLED', ''])('shows the plain status %j', (status) => {
    expect(loggedStatus(status)).toBe(status);
    expect(loggedType(`intent.${status.toLowerCase()}`, status)).toBe(`intent.${status.toLowerCase()}`);
  });

  test('reads a text of a million characters once', () => {
    const text = 'a'.repeat(1_000_000);
    expect(withoutPrivateWords(text)).toBe(text);
  });
});
