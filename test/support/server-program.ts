import { loneServer } from './lone-server.ts';

// The HTTP server of the daemon in a process of its own, so that its memory can be measured. Prints its address.
// SERVER_TOKEN: the token of its API.

const server = loneServer(process.env.SERVER_TOKEN ?? '');
process.stdout.write(`${(await server.start()).url}\n`);
