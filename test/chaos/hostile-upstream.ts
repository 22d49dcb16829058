import { chance, pick, type Random } from '../../sandbox/world/random.ts';
import { RewritingProxy } from '../support/rewriting-proxy.ts';
import { HostileTransfers } from './hostile-transfers.ts';

const MIB = 1024 * 1024;

/** Share of the requests with a hostile answer, and share with a true answer and hostile members. */
const HOSTILE_SHARE = 0.15;
const ADDED_SHARE = 0.15;

const digits = (count: number): string => `1.${'0'.repeat(count - 2)}1`;
const filled = (member: string, count: number): string => `[${Array(count).fill(member).join(',')}]`;
const results = (list: string): string => `{"results":${list},"nextCursor":null}`;

const BODIES: Readonly<Record<string, () => string>> = {
  'under 1 MiB': () => results(`["${'x'.repeat(MIB - 100)}"]`),
  'over 1 MiB': () => results(`["${'x'.repeat(MIB)}"]`),
  '19,000 members': () => results(filled('1', 19_000)),
  '20,001 members': () => results(filled('{}', 20_001)),
  '999 digits': () => results(`[${digits(999)}]`),
  '1,000 digits': () => results(`[${digits(1_000)}]`),
  '1,001 digits': () => results(`[${digits(1_001)}]`),
  '1,000,000 digits': () => results(`[${digits(1_000_000)}]`),
  'deep nesting': () => '['.repeat(100_000),
  'lone surrogate': () => results('["\\ud800"]'),
  'prototype member': () => '{"__proto__":{"results":[]}}',
  HTML: () => '<html><body>Bad Gateway</body></html>',
  truncated: () => '{"results":[{"intentHash":"0x',
  empty: () => '',
};

/** Members that may be added to a true answer without effect on its meaning. */
const ADDED: readonly (() => string)[] = [
  () => `"hostileNumber":${digits(1_001)}`,
  () => '"hostileText":"\\ud800"',
  () => '"__proto__":{"isAdmin":true}',
  () => '"hostileStatus":"SECRET_key_ops@example.com"',
];

/** A proxy in front of the sandbox that sometimes answers with hostile bytes in its place. It has transfers of its own. */
export class HostileUpstream {
  readonly #proxy: RewritingProxy;
  readonly transfers: HostileTransfers;
  /** Number of times that each body was sent. */
  readonly sent = new Map<string, number>();
  /** False passes every answer through. */
  isHostile = false;

  constructor(origin: string, random: Random) {
    this.#proxy = new RewritingProxy(origin);
    this.transfers = new HostileTransfers(random);
    const replaced = new WeakSet<object>();
    this.#proxy.rewriting = {
      request: (passing) => {
        if (!this.isHostile || !chance(random, HOSTILE_SHARE)) return passing;
        replaced.add(passing);
        // The sandbox must not count a record as shown that the daemon never receives.
        return { ...passing, path: '/hostile' };
      },
      answer: (returning, passing) => {
        const nowMs = Date.now();
        this.transfers.advance(nowMs, this.isHostile);
        if (replaced.has(passing)) {
          const name = pick(random, Object.keys(BODIES));
          this.#count(name);
          const type = pick(random, ['application/json', 'text/html', 'application/octet-stream']);
          const body = BODIES[name]?.() ?? '';
          return { status: pick(random, [200, 200, 200, 500, 302]), headers: { 'content-type': type }, body };
        }
        const body = this.transfers.answer(passing.path, nowMs);
        if (body !== null) {
          this.#count('own transfers');
          return { status: 200, headers: { 'content-type': 'application/json' }, body };
        }
        if (!this.isHostile || !returning.body.startsWith('{"') || !chance(random, ADDED_SHARE)) {
          return returning;
        }
        this.#count('added member');
        return { ...returning, body: `{${pick(random, ADDED)()},${returning.body.slice(1)}` };
      },
    };
  }

  #count(name: string): void {
    this.sent.set(name, (this.sent.get(name) ?? 0) + 1);
  }

  async start(): Promise<void> {
    await this.#proxy.start();
  }

  get url(): string {
    return this.#proxy.url;
  }

  async close(): Promise<void> {
    await this.#proxy.close();
  }
}
