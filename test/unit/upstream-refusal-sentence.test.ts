import { expect, test } from 'vitest';
import { refusalSentence } from '../../src/upstream/client/failure.ts';

const STATUS = { endpoint: 'status', isPage: false, takesKey: true, hasKey: true } as const;

test.each([
  [
    401,
    'invalid-api-key',
    /refuses the API key \(HTTP 401, invalid-api-key\): it is missing, unknown or revoked/,
  ],
  [401, 'api-key-expired', /refuses the API key \(HTTP 401, api-key-expired\): it has expired/],
  [401, null, /refuses the API key \(HTTP 401\)/],
  [403, 'permission-denied', /lacks the permission/],
  [403, null, /HTTP 403 without a code/],
])('a refused key (HTTP %i, %s) is reported in one plain line', (httpStatus, problemCode, expected) => {
  const sentence = refusalSentence({ ...STATUS, httpStatus, problemCode });
  expect(sentence).toMatch(expected);
  expect(sentence).toMatch(/upstream\.apiKey|its operator/);
  expect(sentence?.length).toBeLessThan(200);
});

test.each([
  [401, 'invalid-api-key', ', invalid-api-key'],
  [401, null, ''],
  [403, 'permission-denied', ', permission-denied'],
  [403, null, ''],
])('a request without a key that is refused (HTTP %i, %s) names the setting', (httpStatus, problemCode, code) => {
  expect(refusalSentence({ ...STATUS, hasKey: false, httpStatus, problemCode })).toBe(
    `the upstream refuses a request without a key (HTTP ${httpStatus}${code}): set upstream.apiKey`,
  );
});

test.each([
  ['another failure', { ...STATUS, httpStatus: 503, problemCode: null }],
  ['no answer', { ...STATUS, httpStatus: null, problemCode: null }],
  [
    'a signature that is refused without a key',
    { ...STATUS, hasKey: false, httpStatus: 401, problemCode: 'invalid-signature' },
  ],
  ['a signature that is refused', { ...STATUS, httpStatus: 401, problemCode: 'invalid-signature' }],
  ['a page of something in between', { ...STATUS, httpStatus: 403, problemCode: null, isPage: true }],
])('%s is no refused key', (_, failure) => {
  expect(refusalSentence(failure)).toBe(null);
});

test.each([
  ['gasless-job', 'upstream.gateway and baseUrl'],
  ['vault', 'upstream.gateway and baseUrl'],
  ['open-quotes', 'upstream.quotesUrl'],
] as const)('a gateway 403 at %s, which takes no key, is a wrong path', (endpoint, place) => {
  const refused = { endpoint, isPage: false, takesKey: false, hasKey: false, problemCode: null };
  expect(refusalSentence({ ...refused, httpStatus: 403 })).toBe(
    `the upstream refuses the request (HTTP 403 without a code), which takes no key: it has no such path; check ${place}`,
  );
  expect(refusalSentence({ ...refused, httpStatus: 401 })).toBe(null);
  expect(refusalSentence({ ...refused, httpStatus: 403, isPage: true })).toBe(null);
});
