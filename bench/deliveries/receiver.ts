import { createServer } from 'node:http';

/**
 * A receiver that accepts all. `/count`: number of requests; `/came`: ids and times (Unix ms), oldest first; `/forget`
 * clears.
 */
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    if (request.url === '/forget') came.length = 0;
    response.end(JSON.stringify(request.url === '/came' ? came : came.length));
    return;
  }
  came.push([String(request.headers['webhook-id']), performance.timeOrigin + performance.now()]);
  request.resume().once('end', () => response.writeHead(204).end());
});

const came: [id: string, atMs: number][] = [];

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  console.log(`listening on ${address.port}`);
});
