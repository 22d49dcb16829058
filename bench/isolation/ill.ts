import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';

const HANG_MS = 30_000;
const DRIP_EVERY_MS = 20;
const RETRY_AFTER_SECONDS = 1;

/** Faulty receivers of all kinds except a faulty name, in one process. Prints the address of each, as JSON. */
const ill: Readonly<Record<string, { scheme: 'http' | 'https'; server: Server }>> = {
  // Answers after 30 s.
  hanging: {
    scheme: 'http',
    server: createHttpServer((request, response) => {
      request.resume();
      setTimeout(() => response.writeHead(204).end(), HANG_MS);
    }),
  },
  resetting: { scheme: 'http', server: createServer((socket) => socket.resetAndDestroy()) },
  // Accepts connections, and does not answer a TLS handshake.
  speechless: { scheme: 'https', server: createServer((socket) => socket.on('error', () => {}).resume()) },
  // Sends one header after another, for ever.
  dripping: {
    scheme: 'http',
    server: createServer((socket) => {
      let timer: NodeJS.Timeout | undefined;
      socket.on('error', () => {}).on('close', () => clearInterval(timer));
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\n');
        timer = setInterval(() => socket.write('a: b\r\n'), DRIP_EVERY_MS);
      });
    }),
  },
  // Answers every request with 429.
  refusing: {
    scheme: 'http',
    server: createHttpServer((request, response) => {
      request.resume();
      response.writeHead(429, { 'retry-after': String(RETRY_AFTER_SECONDS) }).end();
    }),
  },
};

const urls: Record<string, string> = {};
for (const [name, { scheme, server }] of Object.entries(ill)) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  urls[name] = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
console.log(JSON.stringify(urls));
