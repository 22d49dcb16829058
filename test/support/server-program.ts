import { Secret } from '../../src/secret.ts';
import { EventLinks } from '../../src/server/event-links.ts';
import { Server } from '../../src/server/server.ts';

// The HTTP server of the daemon in a process of its own, so that its memory can be measured. SERVER_TOKEN: the token of
// its API. Says on stdout where it listens.

const token = new Secret(process.env.SERVER_TOKEN ?? '');
const server = new Server({
  host: '127.0.0.1',
  port: 0,
  metrics: { expose: async () => ({ contentType: 'text/plain', body: 'up 1\n' }) },
  readiness: async () => [],
  health: () => [],
  api: {
    console: true,
    publicUrl: null,
    tokens: { read: null, admin: [token] },
    links: new EventLinks(token),
    findEvent: async () => null,
    parts: () => null,
  },
});
process.stdout.write(`${(await server.start()).url}\n`);
