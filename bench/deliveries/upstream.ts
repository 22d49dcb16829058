import { createServer } from 'node:http';

/** A transfer on a wallet's page. `number` counts all transfers so far; past ones have negative numbers. */
type Transfer = { number: number; record: object };

const PAGE = 50;
const PAST_SECONDS = 1_700_000_000;

/**
 * An upstream whose wallets get new transfers. A page shows a wallet's newest ones first. Controls, which return a number:
 * `/past?each=50`: past transfers of each wallet that was not requested yet
 * `/pace?perSecond=200`: from now on evenly, the wallets in turn; returns the number of earlier transfers
 * `/make?count=20000`: so many at once
 * `/lone?wallet=0x…`: one of this wallet, which then has no turn among the others; returns its number
 * `/requests`: number of requested pages; `/born`: number of transfers
 * `/shown`: transfers by number with the time (Unix ms) at which their first answer was written
 */
const server = createServer((request, response) => {
  const { searchParams, pathname } = new URL(request.url ?? '/', 'http://upstream');
  const wallet = searchParams.get('wallet');
  const control = CONTROLS[pathname];
  if (control !== undefined) {
    response.end(JSON.stringify(control(searchParams)));
    return;
  }
  const page = wallet === null ? recordPage(searchParams.get('intentHash')) : pageOf(wallet, searchParams);
  const results = page.transfers.map(({ record }) => record);
  const body = JSON.stringify({ results, nextCursor: page.next });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
  const nowMs = performance.timeOrigin + performance.now();
  for (const { number } of page.transfers) if (!shown.has(number)) shown.set(number, nowMs);
});

const EMPTY: { transfers: Transfer[]; next: string | null } = { transfers: [], next: null };

const CONTROLS: { readonly [path: string]: (query: URLSearchParams) => unknown } = {
  '/requests': () => requests,
  '/born': () => born(),
  '/shown': () => [...shown].filter(([number]) => number >= 0),
  '/past': (query) => {
    past = Number(query.get('each'));
    return past;
  },
  '/pace': (query) => setPace(Number(query.get('perSecond'))),
  '/make': (query) => {
    setPace(0);
    pace.before += Number(query.get('count'));
    make();
    return made;
  },
  '/lone': (query) => {
    make();
    const wallet = query.get('wallet') ?? '';
    const all = listOf(wallet);
    lone.add(wallet);
    all.push(transferOf(made));
    pace.before += 1;
    return made++;
  },
};

const wallets = new Map<string, Transfer[]>();
const transfers = new Map<string, Transfer>();
const lone = new Set<string>();
const shown = new Map<number, number>();
let requests = 0;
let made = 0;
let past = 0;
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
  const lists = [...wallets].filter(([wallet]) => !lone.has(wallet)).map(([, list]) => list);
  for (const most = born(); made < most && lists.length > 0; made++) {
    lists[made % lists.length]?.push(transferOf(made));
  }
}

function listOf(wallet: string): Transfer[] {
  const list = wallets.get(wallet) ?? pastTransfers();
  wallets.set(wallet, list);
  return list;
}

/** A page with one transfer, by its hash. */
function recordPage(hash: string | null): typeof EMPTY {
  requests++;
  const transfer = hash === null ? undefined : transfers.get(hash);
  return { transfers: transfer === undefined ? [] : [transfer], next: null };
}

function pageOf(wallet: string, query: URLSearchParams): typeof EMPTY {
  requests++;
  const list = listOf(wallet);
  make();
  if ((query.get('status') ?? 'filled') !== 'filled') return EMPTY;
  const before = Number(query.get('cursor') ?? Number.POSITIVE_INFINITY);
  const all = list.filter(({ number }) => number < before);
  const some = all.slice(-Number(query.get('limit') ?? PAGE)).reverse();
  const next = all.length > some.length ? String(some.at(-1)?.number) : null;
  return { transfers: some, next };
}

/** Past transfers of the next wallet. */
function pastTransfers(): Transfer[] {
  const first = -past * (wallets.size + 1);
  return Array.from({ length: past }, (_, at) => transferOf(first + at, PAST_SECONDS));
}

/** Makes a filled transfer: it makes one event. */
function transferOf(number: number, updatedAt = Math.floor(Date.now() / 1_000)): Transfer {
  const digits = Math.abs(number).toString(16);
  const hash = `0x${number < 0 ? 'e' : '0'}${digits.padStart(63, '0')}`;
  const leg = (chainId: number): object => ({
    chainId,
    txHash: `0x${chainId.toString(16)}${hash.slice(2 + chainId.toString(16).length)}`,
    token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    amount: '1250000000',
  });
  const record = {
    id: `intent:${hash}`,
    type: 'intent',
    status: 'filled',
    updatedAt,
    sourceTx: leg(8453),
    destinationTx: leg(42161),
  };
  const transfer = { number, record };
  transfers.set(hash, transfer);
  return transfer;
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  console.log(`listening on ${address.port}`);
});
