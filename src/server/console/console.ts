import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { LIMITS } from '../../domain/limits.ts';
import { VERSION } from '../../version.ts';
import type { Access, Denial } from '../api/access.ts';
import { readBodies } from '../api/api.ts';
import { sendProblem } from '../problem.ts';

type Asset = { body: Buffer; type: string; etag: string };

const FOLDER = join(import.meta.dirname, '../../console');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The files of the console by name, and `htm.js`, the only library that they import. */
function readAssets(): ReadonlyMap<string, Asset> {
  const own = readdirSync(FOLDER).filter((name) => TYPES[extname(name)] !== undefined);
  const { resolve } = createRequire(import.meta.url);
  // Found by its folder: for `require`, the package names a file that is absent.
  const library = join(dirname(resolve('htm')), '../preact/standalone.module.js');
  return new Map([
    ...own.map((name) => [name, assetOf(join(FOLDER, name), name)] as const),
    ['htm.js', assetOf(library, 'htm.js')],
  ]);
}

function assetOf(path: string, name: string): Asset {
  const body = readFileSync(path);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { body, type: TYPES[extname(name)] ?? '', etag };
}

/** Allows only files of this server: no foreign script, style, picture or connection, and no frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const SIGN_IN = z.strictObject({ token: z.string().min(1).max(LIMITS.signIn.textCharacters) });

/** Adds the console: the page at `/`, its files, sign-in and sign-out. The page reads all its data from the API. */
export function routeConsole(app: FastifyInstance, access: Access): void {
  const assets = readAssets();
  app.get('/', (request, reply) => sendAsset(request, reply, assets.get('index.html')));
  app.get<{ Params: { name: string } }>('/console/:name', (request, reply) =>
    sendAsset(request, reply, assets.get(request.params.name)),
  );
  app.get('/console/session', async (request, reply) => {
    const found = await access.session(request);
    if ('denial' in found) return deny(reply, found.denial);
    return reply.headers({ ...HEADERS, 'cache-control': 'no-store' }).send({ ...found, version: VERSION });
  });
  // A scope of its own: a client that signs in has no token yet, and gets the limits of an unknown client.
  app.register(async (scope) => {
    readBodies(scope, LIMITS.signIn);
    scope.post('/console/session', { config: { takesBody: true } }, (request, reply) =>
      signIn(request, reply, access),
    );
  });
  app.delete('/console/session', async (request, reply) => {
    const signedOut = await access.signOut(request);
    if ('denial' in signedOut) return deny(reply, signedOut.denial);
    return reply.headers({ 'set-cookie': signedOut.cookie }).code(204).send();
  });
}

async function signIn(request: FastifyRequest, reply: FastifyReply, access: Access): Promise<FastifyReply> {
  const body = SIGN_IN.safeParse(request.body);
  if (!body.success) return sendProblem(reply, 400, 'body: found something else, expected {"token": "…"}');
  const signedIn = await access.signIn(request, body.data.token);
  if ('denial' in signedIn) return deny(reply, signedIn.denial);
  const { cookie, scope } = signedIn;
  return reply.headers({ ...HEADERS, 'cache-control': 'no-store', 'set-cookie': cookie }).send({ scope });
}

function deny(reply: FastifyReply, { status, detail, headers = {} }: Denial): FastifyReply {
  return sendProblem(reply.headers({ ...headers, 'cache-control': 'no-store' }), status, detail);
}

function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset | undefined): FastifyReply {
  if (asset === undefined) return sendProblem(reply, 404, 'found no such file of the console');
  reply.headers({ ...HEADERS, 'cache-control': 'no-cache', etag: asset.etag });
  if (request.headers['if-none-match'] === asset.etag) return reply.code(304).send();
  return reply.type(asset.type).send(asset.body);
}
