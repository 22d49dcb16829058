import { createServer } from 'node:http';

/**
 * An upstream in which every intent is in flight. `/requests` returns the number of requests so far; after `/changes?share=0.2`
 * that share of answers has a change. The discovery lists are empty.
 */
const server = createServer((request, response) => {
  const { searchParams, pathname } = new URL(request.url ?? '/', 'http://upstream');
  const hash = searchParams.get('intentHash');
  if (pathname === '/requests') return void response.end(String(requests));
  if (pathname === '/changes') {
    share = Number(searchParams.get('share'));
    return void response.end();
  }
  requests++;
  const results = hash === null ? [] : [recordOf(hash)];
  const body = JSON.stringify({ results, nextCursor: null });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
});

const startSeconds = Math.floor(Date.now() / 1_000);
const changes = new Map<string, number>();
let requests = 0;
let share = 0;

/** A transfer with known funding; each change is a later `updatedAt` with another `txHash`. */
function recordOf(hash: string): object {
  if (Math.random() < share) changes.set(hash, (changes.get(hash) ?? 0) + 1);
  const count = changes.get(hash) ?? 0;
  const txHash = `0x${count.toString(16).padStart(4, '0')}${hash.slice(6)}`;
  return {
    id: `intent:${hash}`,
    type: 'intent',
    status: 'pending',
    updatedAt: startSeconds + count,
    txHash,
    sourceTx: {
      chainId: 8453,
      txHash,
      token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      amount: '1250000000',
    },
  };
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  console.log(`listening on ${address.port}`);
});
