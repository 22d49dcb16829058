import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

/**
 * A receiver that accepts all, `--delay-ms` after each request. `/count`: number of requests; `/came`: id, time (Unix ms) and
 * subject of each, oldest first; `/forget` clears.
 */
const { values } = parseArgs({ options: { 'delay-ms': { type: 'string', default: '0' } } });
const delayMs = Number(values['delay-ms']);

const SUBJECT = /"id":"(intent:0x[0-9a-f]{64})"/;

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    if (request.url === '/forget') came.length = 0;
    response.end(JSON.stringify(request.url === '/came' ? came : came.length));
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

const came: [id: string, atMs: number, subject: string][] = [];

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  console.log(`listening on ${address.port}`);
});
