import { request as requestHttps } from 'node:https';
import { isIPv6, type LookupFunction, Socket } from 'node:net';
import { buildConnector } from 'undici';
import { codeOf } from '../errors.ts';
import type { Secret } from '../secret.ts';
import { request as requestHttp } from './node-http.ts';

/** A proxy made no connection; the message has the reason, without the login. */
class ProxyError extends Error {
  readonly code = 'PROXY_FAILED';
}

/**
 * `proxy`: http or https URL, with user and password if the proxy requires them. `lookup`: for the proxy's own
 * address. `tls`: for the target. `timeoutMs`: for a whole connection, with its TLS handshake.
 */
export type ProxyOptions = {
  proxy: Secret;
  lookup: LookupFunction;
  timeoutMs: number;
  tls?: buildConnector.BuildOptions;
};

/**
 * Makes a connector with one tunnel (`CONNECT`) per connection, also to plain http, so that a hanging one delays no
 * other; undici's own agent shares connections. The proxy resolves names.
 */
export function proxiedConnector({ proxy, lookup, timeoutMs, tls }: ProxyOptions): buildConnector.connector {
  const url = new URL(proxy.reveal());
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  const through = buildConnector({ ...tls, allowH2: false, timeout: 0 });
  return (target, callback) => {
    const { hostname, protocol, port } = target;
    const authority = `${isIPv6(hostname) ? `[${hostname}]` : hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
    const tunnel = request({
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port || (url.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...loginOf(url) },
      agent: false,
      lookup,
    });
    let secured: unknown;
    const timer = setTimeout(() => {
      const late = new ProxyError(`no connection through the proxy within ${timeoutMs} ms`);
      tunnel.destroy(late);
      if (secured instanceof Socket) secured.destroy(late);
    }, timeoutMs);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      callback(error, null);
    };
    tunnel.once('error', (error) => fail(error instanceof ProxyError ? error : notReached(error)));
    tunnel.once('connect', ({ statusCode = 0 }, socket, head) => {
      if (statusCode < 200 || statusCode > 299) {
        socket.on('error', () => undefined).destroy();
        fail(
          new ProxyError(
            `the proxy answered ${statusCode}${statusCode === 407 ? ', it wants another login' : ''}`,
          ),
        );
        return;
      }
      if (head.length > 0) socket.unshift(head);
      if (protocol !== 'https:') {
        clearTimeout(timer);
        callback(null, socket);
        return;
      }
      secured = through({ ...target, httpSocket: socket }, (...[error, made]) => {
        if (error !== null) return fail(error);
        clearTimeout(timer);
        callback(null, made);
      });
    });
    tunnel.end();
  };
}

function notReached(error: Error): ProxyError {
  const code = codeOf(error) ?? error.name;
  return new ProxyError(`the proxy could not be reached (${code})`);
}

function loginOf({ username, password }: URL): { 'proxy-authorization'?: string } {
  if (username === '' && password === '') return {};
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` };
}
