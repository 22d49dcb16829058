import { Secret } from '../../src/secret.ts';
import { Server } from '../../src/server/server.ts';

/** The HTTP server of the daemon alone, with a token for its API; it trusts the proxies of 127.0.1.0/24. */
export function loneServer(adminToken: string): Server {
  const token = new Secret(adminToken);
  return new Server({
    host: '127.0.0.1',
    port: 0,
    metrics: { expose: async () => ({ contentType: 'text/plain', body: 'up 1\n' }) },
    readiness: async () => [],
    health: () => [],
    api: {
      console: true,
      publicUrl: null,
      trustProxy: ['127.0.1.0/24'],
      tokens: { read: null, consume: null, admin: [token] },
      linkToken: token,
      findEvent: async () => null,
      deps: () => null,
    },
  });
}
