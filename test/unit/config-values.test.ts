import { createHash } from 'node:crypto';
import { base58, createBase58check } from '@scure/base';
import fc from 'fast-check';
import { getAddress } from 'viem';
import { describe, expect, test } from 'vitest';
import { checkWallet } from '../../src/config/fields/addresses.ts';
import { parseDuration } from '../../src/config/fields/fields.ts';
import { httpUrl, isLoopback, isPrivateHost } from '../../src/config/fields/http.ts';
import { expandVariables, maskVariables } from '../../src/config/file/expand.ts';

const NOTHING = { env: {}, folder: '.' };

describe('durations', () => {
  test('are a whole number times their unit', () => {
    const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
    fc.assert(
      fc.property(fc.nat(999_999_999), fc.constantFrom('ms', 's', 'm', 'h', 'd'), (count, unit) => {
        expect(parseDuration(`${count}${unit}`)).toBe(count * units[unit]);
      }),
    );
  });

  test('are nothing else', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!/^\d{1,9}(ms|s|m|h|d)$/.test(text));
        expect(parseDuration(text)).toBeNull();
      }),
    );
    for (const text of ['', '5', 's', '1.5h', '-1s', '5 m', ' 5m', '5m\n', '1h30m', '5M', '١s']) {
      expect(parseDuration(text)).toBeNull();
    }
  });
});

describe('expansion', () => {
  // A name that begins like a token, `rK_A`, is not printed: it has its own cases below.
  const name = fc
    .stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/)
    .filter((text) => !/^_*(wh|sk|pk|rk|gh|npm|xox|akia|eyj)/i.test(text));
  const plain = fc.string().map((text) => text.replaceAll('$', ''));

  test('replaces a variable with its value and does not expand the value', () => {
    fc.assert(
      fc.property(plain, name, fc.string(), plain, (before, variable, value, after) => {
        const env = { [variable]: value };
        const { text, variables, problems } = expandVariables(`${before}\${${variable}}${after}`, {
          env,
          folder: '.',
        });
        expect(text).toBe(before + value + after);
        expect(variables).toEqual([variable]);
        expect(problems).toEqual([]);
      }),
    );
  });

  test('takes the default exactly when the variable is unset or empty', () => {
    const fallback = fc.string().map((text) => text.replaceAll(/[{}]/g, ''));
    fc.assert(
      fc.property(name, fallback, fc.option(fc.string(), { nil: undefined }), (variable, preset, value) => {
        const { text, problems } = expandVariables(`\${${variable}:-${preset}}`, {
          env: { [variable]: value },
          folder: '.',
        });
        expect(text).toBe(value === undefined || value === '' ? preset : value);
        expect(problems).toEqual([]);
      }),
    );
  });

  test('does not change text without variables, and "$${" is a literal "${"', () => {
    fc.assert(
      fc.property(plain, (text) => {
        expect(expandVariables(text, NOTHING).text).toBe(text);
        expect(expandVariables(`$\${${text}`, NOTHING)).toEqual({
          text: `\${${text}`,
          variables: [],
          outside: [],
          problems: [],
        });
      }),
    );
  });

  test('names a variable that is not set', () => {
    expect(expandVariables('${A}${B:-b}', NOTHING).problems).toEqual([
      'found ${A}, which is not set, expected it in the environment or with a default: ${A:-…}',
    ]);
  });

  test.each([
    `whsk_${'Zqx4'.repeat(8)}`,
    `whsec_${'Zqx4'.repeat(8)}`,
    `sk_live_${'a'.repeat(24)}`,
    'rK_A',
    `AKIA${'IOSFODNN7EXA'}`,
    `f${'0123456789abcdef'.repeat(4)}`,
    `Ab1${'x'.repeat(80)}`,
  ])('prints no secret that was written as the name of a variable: %s', (name) => {
    const { problems, variables } = expandVariables(`\${${name}}`, NOTHING);
    expect([variables, problems]).toEqual([
      ['…'],
      [expect.stringMatching(/^found \$\{…\}, which is not set/)],
    ]);
    expect(expandVariables(`\${${name}:-other}`, NOTHING).variables).toEqual(['…']);
  });

  test.each([
    'NPM_TOKEN',
    'WEBHOOK_SECRET_2',
    'sk',
    'api_key_of_the_treasury',
    'backend1',
  ])('prints the name %s of a variable', (name) => {
    expect(expandVariables(`\${${name}}`, NOTHING).variables).toEqual([name]);
  });

  test.each([
    '${',
    '${}',
    '${1A}',
    '${A',
    '${A B}',
    '${A-b}',
    '${A:-${B}}',
    '${A:b}',
  ])('refuses %s, which begins no variable', (text) => {
    expect(expandVariables(text, { env: { A: 'a', B: 'b' }, folder: '.' }).problems).not.toEqual([]);
  });

  test('masking retains the length and can be undone, for any text', () => {
    const pieces = fc.constantFrom(
      '${A}',
      '${A:-b c}',
      '$${A}',
      '${',
      '}',
      '{',
      '$',
      'x',
      '\n',
      '\ue000',
      '\ue001',
    );
    fc.assert(
      fc.property(fc.array(pieces), (parts) => {
        const text = parts.join('');
        const { masked, unmask } = maskVariables(text);
        expect(masked).toHaveLength(text.length);
        expect(unmask(masked)).toBe(text);
      }),
    );
  });
});

describe('wallets', () => {
  const base58check = createBase58check((data: Uint8Array) => createHash('sha256').update(data).digest());
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

  test('of any 32 bytes in base58 are Solana addresses, of fewer or more bytes none', () => {
    fc.assert(
      fc.property(bytes(32), (key) => {
        const address = base58.encode(key);
        expect(checkWallet(address)).toEqual({ ok: true, kind: 'solana', address });
      }),
    );
    fc.assert(
      fc.property(fc.oneof(bytes(31), bytes(33)), (key) => {
        expect(checkWallet(base58.encode(key)).ok).toBe(false);
      }),
    );
  });

  test('with Tron version byte and checksum are Tron addresses, with one character changed none', () => {
    fc.assert(
      fc.property(bytes(20), fc.integer({ min: 1, max: 33 }), (account, index) => {
        const address = base58check.encode(Uint8Array.from([0x41, ...account]));
        expect(checkWallet(address)).toEqual({ ok: true, kind: 'tron', address });
        const other = address[index] === '2' ? '3' : '2';
        expect(checkWallet(address.slice(0, index) + other + address.slice(index + 1)).ok).toBe(false);
      }),
    );
  });

  test('with 40 hex digits are EVM addresses; mixed case must be the checksum', () => {
    fc.assert(
      fc.property(bytes(20), (account) => {
        const lower = `0x${Buffer.from(account).toString('hex')}` as const;
        const checksummed = getAddress(lower);
        expect(checkWallet(checksummed)).toEqual({ ok: true, kind: 'evm', address: lower });
        const letter = checksummed.slice(2).search(/[a-fA-F]/) + 2;
        fc.pre(letter > 1 && /[a-f]/.test(checksummed) && /[A-F]/.test(checksummed.slice(letter + 1)));
        const character = checksummed.charAt(letter);
        const flipped =
          character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase();
        const wrong = checksummed.slice(0, letter) + flipped + checksummed.slice(letter + 1);
        fc.pre(
          wrong.slice(2) !== wrong.slice(2).toLowerCase() && wrong.slice(2) !== wrong.slice(2).toUpperCase(),
        );
        expect(checkWallet(wrong)).toMatchObject({ ok: false, expected: expect.stringContaining('EIP-55') });
      }),
    );
  });

  test('that are any other text are refused with a reason', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const result = checkWallet(text);
        if (!result.ok) expect(result.expected).toMatch(/address/);
      }),
    );
  });
});

describe('hosts', () => {
  const PRIVATE = [
    'localhost',
    'a.localhost',
    'localhost.',
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '2130706433',
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '[::]',
    '[::1]',
    '[fd00::1]',
    '[fe80::1]',
    '[::ffff:10.0.0.1]',
    '[64:ff9b::a00:1]',
  ];
  const PUBLIC = [
    'example.com',
    '8.8.8.8',
    '172.32.0.1',
    '100.128.0.1',
    '[2606:4700::1111]',
    'localhost.example.com',
  ];

  test.each(PRIVATE)('%s is private', (host) => {
    const url = httpUrl(`https://${host}/hook`);
    expect(url !== null && isPrivateHost(url)).toBe(true);
  });

  test.each(PUBLIC)('%s is public', (host) => {
    const url = httpUrl(`https://${host}/hook`);
    expect(url !== null && isPrivateHost(url)).toBe(false);
  });

  test('only this machine is loopback', () => {
    const loopback = [...PRIVATE, ...PUBLIC].filter((host) => {
      const url = httpUrl(`http://${host}`);
      return url !== null && isLoopback(url);
    });
    expect(loopback).toEqual([
      'localhost',
      'a.localhost',
      'localhost.',
      '127.0.0.1',
      '127.1',
      '0x7f.1',
      '2130706433',
      '[::1]',
    ]);
  });
});
