import { createServer } from 'node:http';

/** A minimal upstream: every intent is pending. `/requests` returns the number of requests so far. */
const server = createServer((request, response) => {
  const { searchParams, pathname } = new URL(request.url ?? '/', 'http://upstream');
  if (pathname === '/requests') {
    response.end(String(requests));
    return;
  }
  const hash = searchParams.get('intentHash');
  const results =
    hash === null
      ? []
      : [{ id: `intent:${hash}`, type: 'intent', status: 'pending', updatedAt: 1_700_000_000 }];
  const body = JSON.stringify({ results, nextCursor: null });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
  requests++;
});

let requests = 0;

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  console.log(`listening on ${address.port}`);
});
