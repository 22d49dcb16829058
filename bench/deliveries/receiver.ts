import { createServer } from 'node:http';

/**
 * A receiver that accepts all. `/count`: number of requests; `/came`: id, time (Unix ms) and subject of each, oldest first;
 * `/clear` clears; `/delay?ms=300` answers later ones after so long.
 */
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://receiver');
    if (pathname === '/clear') came.length = 0;
    if (pathname === '/delay') delayMs = Number(searchParams.get('ms'));
    response.end(JSON.stringify(pathname === '/came' ? came : came.length));
    return;
  }
  const arrival: [id: string, atMs: number, subject: string] = [
    String(request.headers['webhook-id']),
    performance.timeOrigin + performance.now(),
    '',
  ];
  came.push(arrival);
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (text: string) => {
    body += text;
  });
  request.once('end', () => {
    arrival[2] = SUBJECT.exec(body)?.[1] ?? '';
    const answer = (): void => void response.writeHead(204).end();
    if (delayMs === 0) answer();
    else setTimeout(answer, delayMs);
  });
});

let delayMs = 0;
const SUBJECT = /"id":"(intent:0x[0-9a-f]{64})"/;
const came: [id: string, atMs: number, subject: string][] = [];

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  console.log(`listening on ${address.port}`);
});
