import { createHmac, scryptSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { ADMIN_TOKEN, type ApiStage, apiStageOfFile, READ_TOKEN } from '../support/api-stage.ts';
import { startDaemon, testPrefix } from '../support/daemon.ts';

let stage: ApiStage;
const { later } = apiStageOfFile((ready) => {
  stage = ready;
});

async function signIn(token: string, origin = stage.url): Promise<Response> {
  return fetch(`${stage.url}/console/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin },
    body: JSON.stringify({ token }),
  });
}

async function cookieOf(token: string): Promise<string> {
  const [cookie = ''] = (await signIn(token)).headers.getSetCookie();
  return cookie.split(';')[0] ?? '';
}

async function statusOf(path: string, headers: Record<string, string>, method = 'GET'): Promise<number> {
  return (await stage.call({ path, method, token: null, headers })).status;
}

test('the page and its files come with a policy that allows nothing from elsewhere', async () => {
  for (const path of ['/', '/console/main.js', '/console/console.css', '/console/htm.js']) {
    const answer = await fetch(`${stage.url}${path}`);
    expect([path, answer.status]).toEqual([path, 200]);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    const etag = answer.headers.get('etag') ?? '';
    const again = await fetch(`${stage.url}${path}`, { headers: { 'if-none-match': etag } });
    expect(again.status).toBe(304);
  }
  for (const path of ['/console/tsconfig.json', '/console/types.ts', '/console/..%2fmain.ts']) {
    expect((await fetch(`${stage.url}${path}`)).status).toBe(404);
  }
});

test('a token is exchanged for a cookie that scripts cannot read and other sites do not send', async () => {
  expect((await signIn('a-token-that-is-none')).status).toBe(401);
  const answer = await signIn(ADMIN_TOKEN);
  expect([answer.status, await answer.json()]).toEqual([200, { scope: 'admin' }]);
  const [cookie] = answer.headers.getSetCookie();
  expect(cookie).toMatch(/^intentwatch_\d+=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  const host = new URL(stage.url).host;
  const secure = await signIn(ADMIN_TOKEN, `https://${host}`);
  expect(secure.headers.getSetCookie()[0]).toMatch(/; SameSite=Strict; Secure$/);
  expect((await signIn(ADMIN_TOKEN, 'https://evil.example')).status).toBe(403);
});

test('a session reads from the page itself, and acts only from there', async () => {
  const cookie = await cookieOf(ADMIN_TOKEN);
  const own = { cookie, origin: stage.url };
  expect(await statusOf('/receivers', { cookie })).toBe(200);
  expect(await statusOf('/receivers', { cookie, 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await statusOf('/receivers', { cookie, 'sec-fetch-site': 'same-site' })).toBe(403);
  expect(await statusOf('/receivers/backend/pause', { cookie }, 'POST')).toBe(403);
  for (const origin of ['https://evil.example', 'null', stage.url.replace(/\d+$/, '1')]) {
    expect(await statusOf('/receivers/backend/pause', { cookie, origin }, 'POST')).toBe(403);
  }
  expect(await statusOf('/receivers/backend/pause', own, 'POST')).toBe(200);
  expect(await statusOf('/receivers/backend/resume', own, 'POST')).toBe(200);
});

test('a session of the token that reads changes nothing', async () => {
  const own = { cookie: await cookieOf(READ_TOKEN), origin: stage.url };
  expect(await statusOf('/receivers', own)).toBe(200);
  expect(await statusOf('/receivers/backend/pause', own, 'POST')).toBe(403);
});

test('a session that was not signed here, or has ended, is none', async () => {
  const [name = '', value = ''] = (await cookieOf(ADMIN_TOKEN)).split('=');
  const [expires = '', nonce = '', signature = ''] = value.split('.');
  const forged = [
    `${Number(expires) + 60}.${nonce}.${signature}`,
    `${expires}.${nonce}.${'A'.repeat(43)}`,
    'x',
  ];
  for (const session of forged)
    expect(await statusOf('/receivers', { cookie: `${name}=${session}` })).toBe(401);
  const key = scryptSync(ADMIN_TOKEN, 'intentwatch console session', 32);
  const payload = `${Math.floor(Date.now() / 1_000) - 1}.${nonce}`;
  const ended = `${payload}.${createHmac('sha256', key).update(payload).digest('base64url')}`;
  const { status, body } = await stage.call({
    path: '/receivers',
    token: null,
    headers: { cookie: `${name}=${ended}` },
  });
  expect([status, body.detail]).toEqual([401, 'this session has ended; sign in again']);
});

test('signing out takes the cookie away, and only from the page itself', async () => {
  const url = `${stage.url}/console/session`;
  const [cookie, other] = [await cookieOf(ADMIN_TOKEN), await cookieOf(ADMIN_TOKEN)];
  expect((await fetch(url, { method: 'DELETE', headers: { origin: 'https://evil.example' } })).status).toBe(
    403,
  );
  const answer = await fetch(url, { method: 'DELETE', headers: { origin: stage.url, cookie } });
  expect([answer.status, answer.headers.getSetCookie()[0]]).toEqual([
    204,
    expect.stringMatching(/^intentwatch_\d+=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/),
  ]);
  // A copied cookie is signed out with it; other sessions of the token go on.
  expect(await statusOf('/receivers', { cookie })).toBe(401);
  expect(await (await fetch(url, { headers: { cookie } })).json()).toMatchObject({ scope: null });
  expect(await statusOf('/receivers', { cookie: other })).toBe(200);
});

test('without a token no login is possible on this machine, and `console: false` serves only the API', async () => {
  const config = { ...stage.config, prefix: testPrefix() };
  const open = await startDaemon({ ...config, more: { server: { host: '127.0.0.1', port: 0 } } });
  later(() => open.daemon.close());
  const session = await fetch(`${open.daemon.url}/console/session`);
  expect(await session.json()).toMatchObject({ signIn: false, scope: 'admin' });
  const foreign = { headers: { 'sec-fetch-site': 'cross-site' } };
  expect((await fetch(`${open.daemon.url}/console/session`, foreign)).status).toBe(403);
  const server = { host: '127.0.0.1', port: 0, tokens: { read: READ_TOKEN }, console: false };
  const off = await startDaemon({ ...config, prefix: testPrefix(), more: { server } });
  later(() => off.daemon.close());
  for (const path of ['/', '/console/main.js', '/console/session'])
    expect((await fetch(`${off.daemon.url}${path}`)).status).toBe(404);
});
