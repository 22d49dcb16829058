import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { pages } from '../../scripts/sentences.ts';
import { noteOf } from '../support/optional-parts.ts';
import { isTyped, pageBlocks } from '../support/page-blocks.ts';
import { missingForPages, type PageRun, runPages } from '../support/page-session.ts';

const FOLDER = resolve(import.meta.dirname, '../..');
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const ENV = {
  INTENTWATCH_TOKEN: 'token-of-16-char',
  WEBHOOK_SECRET: SECRET,
  UPSTREAM_API_KEY: 'sandbox-key',
};

/** The config for the pages: wallets of a sandbox, a receiver, RPC endpoints and books. */
const CONFIG = `
upstream:
  baseUrl: http://127.0.0.1:8080
  quotesUrl: http://127.0.0.1:8082
  apiKey: \${UPSTREAM_API_KEY}
  requestsPerSecond: 10
server:
  token: \${INTENTWATCH_TOKEN}
  secretsKey: a-key-of-32-characters-or-longer
chains:
${[1, 10, 8453, 42161]
  .map(
    (id) =>
      `  ${id}: { rpc: [{ name: own, url: "http://127.0.0.1:8080/chains/${id}/own" }, { name: other, url: "http://localhost:8080/chains/${id}/other" }] }`,
  )
  .join('\n')}
books: {}
receivers:
  - name: backend
    type: webhook
    url: http://127.0.0.1:8000/
    secrets: ["\${WEBHOOK_SECRET}"]
    allowPrivateNetwork: true
    allowInsecure: true
  - name: ledger
    type: webhook
    url: http://127.0.0.1:9/
    secrets: ["\${WEBHOOK_SECRET}"]
    allowPrivateNetwork: true
    allowInsecure: true
    retries: { delays: [1s] }
subscriptions:
  - name: treasury
    wallets: [WALLETS]
    metadata: { order: "1042" }
    receivers: [backend, ledger]
`;

/** A sandbox whose transfers settle within seconds, and a program that verifies webhooks. */
const SANDBOX = `
intentwatch sandbox --time-scale 20 --transfers-per-second 1 --finality-seconds 5 > sandbox.log &
until command curl -sf http://127.0.0.1:8081/subjects > subjects.json; do sleep 0.1; done
`;

const RECEIVER = '(cd examples/verify-webhook && exec node verify.ts) > receiver.log &\nRECEIVER=$!\n';

const WALLETS = `
sed -i "s/WALLETS/$(grep -oE '"0x[0-9a-fA-F]{40}"' subjects.json | sort -u | head -n 4 | paste -sd, -)/" intentwatch.yaml
`;

/** A daemon beside them; continues once a transfer has settled, with the variables that a reader fills in. */
const DAEMON = `${SANDBOX}
${RECEIVER}
${WALLETS}
intentwatch start > intentwatch.log &
DAEMON=$!
until node ${join(FOLDER, 'test/support/page-given-program.ts')} > given.sh 2> given.log; do kill -0 "$DAEMON" || exit 1; sleep 0.5; done
. ./given.sh
`;

const END_DAEMON = `
iw_end "$DAEMON"
`;

const WITHOUT_BOOKS = `
sed -i '/^books:/d' intentwatch.yaml
`;

const ONE_WALLET_LEFT = `sed -E -i 's/wallets: \\[("0x[^"]*").*/wallets: [\\1]/' intentwatch.yaml`;

const ADD_RECEIVER = `
curl -X POST -H "Authorization: Bearer $INTENTWATCH_TOKEN" -H 'content-type: application/json' \\
  http://127.0.0.1:9464/api/v1/receivers \\
  -d '{ "name": "shop", "type": "webhook", "url": "https://example.com/hook", "secrets": ["'"$WEBHOOK_SECRET"'"] }'
`;

const ANOTHER_KEY = `
kill "$DAEMON"
until ! command curl -s http://127.0.0.1:9464/healthz > /dev/null; do sleep 0.1; done
sed -i 's/a-key-of/another-key-of/' intentwatch.yaml
intentwatch start > intentwatch.log &
iw_up
`;

const NOTHING_LEFT_OUT = `
curl -H "Authorization: Bearer $INTENTWATCH_TOKEN" http://127.0.0.1:9464/api/v1/receivers > receivers.json
grep -q '"name":"shop"' receivers.json || echo '@@FAILED 1 found no receiver shop'
if grep -q '"leftOut":"' receivers.json; then echo '@@FAILED 1 a receiver is left out'; fi
`;

/** The clone comes from a repository without newer commits. */
const ORIGIN = `
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
(git init -q -b main . && git add package.json && git commit -qm first && git clone -q --bare . ../origin.git &&
  git remote add origin ../origin.git && git fetch -q && git branch -q -u origin/main)
`;

const OWN_REDIS = `
redis-server --port 6379 --save '' --appendonly yes --maxmemory-policy noeviction > redis.log &
export REDIS_URL=redis://127.0.0.1:6379
until redis-cli -u "$REDIS_URL" ping > /dev/null; do sleep 0.1; done
`;

type Setup = Partial<Omit<PageRun, 'pages'>>;

const WITH_CONFIG = { files: { 'intentwatch.yaml': CONFIG } };

const BESIDE_DAEMON: Setup = { ...WITH_CONFIG, before: DAEMON };

const BEFORE_START: Setup = { ...WITH_CONFIG, before: `${SANDBOX}${RECEIVER}${WALLETS}` };

/** The pages that one reader reads in order, with the reader's earlier steps, and those beside the blocks. */
const SESSIONS: readonly { pages: readonly string[]; setup: Setup }[] = [
  {
    pages: [
      ...[
        'docs/transfers.md',
        'docs/proof.md',
        'docs/quotes.md',
        'docs/tracking.md',
        'docs/api.md',
        'docs/deployment.md',
      ],
      ...['docs/receivers.md', 'docs/books.md', 'docs/metrics.md', 'docs/polling.md', 'docs/resend.md'],
      ...['docs/webhooks.md', 'docs/changing.md'],
    ],
    setup: {
      ...BESIDE_DAEMON,
      before: `${DAEMON}export DAY="$(date -u +%F)"`,
      steps: { 'node standard-webhooks.ts': 'kill "$RECEIVER"', '$ intentwatch reload': ONE_WALLET_LEFT },
    },
  },
  {
    pages: ['README.md'],
    setup: {
      before: SANDBOX,
      replaced: { 'https://api.example.com': 'http://127.0.0.1:8080' },
      saved: 'intentwatch.yaml',
    },
  },
  {
    pages: ['docs/operations.md'],
    setup: {
      files: { 'intentwatch.yaml': `redis: { url: "\${REDIS_URL}" }\n${CONFIG}` },
      before: `${OWN_REDIS}${WITHOUT_BOOKS}${DAEMON}`,
    },
  },
  {
    pages: ['docs/install.md', 'docs/running.md', 'docs/logs.md', 'docs/upgrade.md'],
    setup: { ...BEFORE_START, before: `${BEFORE_START.before}${ORIGIN}` },
  },
  { pages: ['docs/sandbox.md', 'docs/consumer.md', 'docs/first-webhook.md'], setup: {} },
  {
    pages: ['docs/redis.md', 'docs/moving-redis.md'],
    setup: {
      ...BESIDE_DAEMON,
      before: `${DAEMON}${END_DAEMON}`,
      steps: {
        '--live': `sed -i '1i redis: { url: "redis://127.0.0.1:6379" }' intentwatch.yaml${WITHOUT_BOOKS}`,
      },
      after: 'intentwatch show "$INTENT_HASH"',
    },
  },
  {
    pages: ['docs/secrets.md'],
    setup: {
      ...BESIDE_DAEMON,
      before: `${DAEMON}${ADD_RECEIVER}`,
      steps: { '-X PUT': ANOTHER_KEY },
      after: NOTHING_LEFT_OUT,
    },
  },
];

/** Pages whose commands are not run here, with reasons. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  'docs/postgres.md': 'needs Postgres: test/long/postgres-receiver.test.ts runs what it shows',
  'examples/round-trip/README.md': 'test/long/round-trip.test.ts runs the program',
};

const PAGES = await Promise.all(
  (await pages()).map(async (path) => ({
    path,
    blocks: pageBlocks(await readFile(join(FOLDER, path), 'utf8')),
  })),
);

test('every page with commands is run, or named with the reason', () => {
  const typed = PAGES.filter(({ blocks }) =>
    blocks.some((block) => isTyped(block) && block.exception === null),
  );
  const named = [...SESSIONS.flatMap((one) => one.pages), ...Object.keys(LEFT_OUT)];
  expect(typed.map(({ path }) => path).sort()).toEqual(named.sort());
});

test.each(
  PAGES.flatMap(({ path, blocks }) =>
    blocks
      .filter((block) => isTyped(block) && block.exception !== null)
      .map(({ line, code, exception }) => ({
        place: `${path}:${line}`,
        code,
        reason: exception?.reason ?? '',
      })),
  ),
)('$place is not run ($reason), and has the syntax of a shell', ({ code }) => {
  expect(spawnSync('bash', ['-n'], { input: code, encoding: 'utf8' }).stderr).toBe('');
});

const missing = await missingForPages();
const chosen = process.env.PAGES?.split(',');

describe.skipIf(missing !== null)(
  `the blocks of pages run as pasted${noteOf(missing === null ? [] : [missing])}`,
  () => {
    const runs = SESSIONS.map(({ pages, setup }) => ({ name: pages.join(', '), pages, setup })).filter(
      ({ name }) => chosen?.some((one) => name.includes(one)) !== false,
    );
    test.concurrent.each(runs)('$name', async ({ pages: paths, setup }) => {
      const result = await runPages({
        before: '',
        files: {},
        replaced: {},
        saved: null,
        steps: {},
        after: '',
        ...setup,
        pages: paths.map((path) => ({
          path,
          blocks: PAGES.find((page) => page.path === path)?.blocks ?? [],
        })),
        env: { ...ENV, ...setup.env },
      });
      expect(result).toEqual({ failed: [], missing: [] });
    });
  },
);
