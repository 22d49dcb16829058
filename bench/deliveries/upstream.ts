import { createServer } from 'node:http';

/** A transfer on a wallet's page. `number` counts all transfers so far. */
type Transfer = { number: number; record: object };

const PAGE = 50;

/**
 * An upstream whose wallets get new transfers, in turn and evenly, from `/pace?perSecond=200` on. A page shows a wallet's
 * newest ones first. `/asked` returns the number of requested pages, `/shown` the shown transfers with the first time (Unix
 * ms, when the answer was written), `/born` the number of transfers.
 */
const server = createServer((request, response) => {
  const { searchParams, pathname } = new URL(request.url ?? '/', 'http://upstream');
  const wallet = searchParams.get('wallet');
  const sendJson = (value: unknown): void => void response.end(JSON.stringify(value));
  if (pathname === '/asked') return sendJson(requests);
  if (pathname === '/born') return sendJson(born());
  if (pathname === '/shown') return sendJson([...shown]);
  if (pathname === '/pace') return sendJson(setPace(Number(searchParams.get('perSecond'))));
  const page = wallet === null ? EMPTY : pageOf(wallet, searchParams);
  const results = page.transfers.map(({ record }) => record);
  const body = JSON.stringify({ results, nextCursor: page.next });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
  const nowMs = performance.timeOrigin + performance.now();
  for (const { number } of page.transfers) if (!shown.has(number)) shown.set(number, nowMs);
});

const EMPTY: { transfers: Transfer[]; next: string | null } = { transfers: [], next: null };

const wallets = new Map<string, Transfer[]>();
const shown = new Map<number, number>();
let requests = 0;
let made = 0;
let pace = { perSecond: 0, fromMs: 0, before: 0 };

function setPace(perSecond: number): number {
  make();
  pace = { perSecond, fromMs: performance.now(), before: made };
  return made;
}

function born(): number {
  return pace.before + Math.floor((pace.perSecond * (performance.now() - pace.fromMs)) / 1_000);
}

function make(): void {
  const lists = [...wallets.values()];
  for (const most = born(); made < most && lists.length > 0; made++) {
    lists[made % lists.length]?.push({ number: made, record: recordOf(made) });
  }
}

function pageOf(wallet: string, query: URLSearchParams): typeof EMPTY {
  requests++;
  if (!wallets.has(wallet)) wallets.set(wallet, []);
  make();
  if ((query.get('status') ?? 'filled') !== 'filled') return EMPTY;
  const before = Number(query.get('cursor') ?? Number.POSITIVE_INFINITY);
  const all = (wallets.get(wallet) ?? []).filter(({ number }) => number < before);
  const transfers = all.slice(-Number(query.get('limit') ?? PAGE)).reverse();
  const next = all.length > transfers.length ? String(transfers.at(-1)?.number) : null;
  return { transfers, next };
}

/** A transfer that has reached its end: it makes one event, and needs no further poll. */
function recordOf(number: number): object {
  const hash = `0x${number.toString(16).padStart(64, '0')}`;
  const leg = (chainId: number): object => ({
    chainId,
    txHash: `0x${chainId.toString(16)}${hash.slice(2 + chainId.toString(16).length)}`,
    token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    amount: '1250000000',
  });
  return {
    id: `intent:${hash}`,
    type: 'intent',
    status: 'filled',
    updatedAt: Math.floor(Date.now() / 1_000),
    sourceTx: leg(8453),
    destinationTx: leg(42161),
  };
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  console.log(`listening on ${address.port}`);
});
