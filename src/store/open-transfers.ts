import { tokenKey } from '../domain/transfers/chains.ts';
import { OPEN_STATES, type OpenAmount, type OpenState } from '../domain/transfers/transfer-move.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';

/** Digits per part of an amount: each part stays a number that Redis can add. */
const PART_DIGITS = 12;

const MOST_PARTS = 7;

/** Whole base units, up to those of a uint256. */
const AMOUNT = /^\d{1,78}$/;

const TOKEN = /^[A-Za-z0-9_-]{1,40}:[A-Za-z0-9]{1,80}$/;

/** The number of transfers in a state, by route and source token, and the amount that they sent, in base units. */
export type OpenSum = {
  state: OpenState;
  route: string;
  chainId: string;
  token: string;
  count: number;
  amount: bigint;
};

/** Sums of all processes by state, route and token, and the start of the oldest transfer in each state (Unix seconds). */
export type OpenSums = { sums: OpenSum[]; oldest: { state: OpenState; since: number | null }[] };

/** Formats a transfer for the counts of a commit: `<state>|<route>|<token>|<ones>,<10^12>,…|<since>`; `""` for none. */
export function openText(open: OpenAmount | null): string {
  if (open === null) return '';
  const { state, route, sent, since } = open;
  const key = tokenKey(sent.chainId ?? '', sent.token ?? '');
  const isKnown = TOKEN.test(key) && AMOUNT.test(sent.amount ?? '');
  const parts = isKnown ? partsOf(sent.amount ?? '') : '';
  return [state, route, isKnown ? key : '', parts, since].join('|');
}

/** Splits an amount into parts, the lowest first: `12,1` for 10^12 + 12. */
function partsOf(amount: string): string {
  const parts: string[] = [];
  for (let end = amount.length; end > 0; end -= PART_DIGITS) {
    parts.push(String(Number(amount.slice(Math.max(0, end - PART_DIGITS), end))));
  }
  return parts.join(',');
}

/** Reads the open transfers: a bounded number of fields and one entry per state, however many there are. */
export async function readOpenTransfers(redis: RedisClient, keys: Keys): Promise<OpenSums> {
  const root = `${keys.counts}:open`;
  const [stored, ...firsts] = await Promise.all([
    redis.hgetall(root),
    ...OPEN_STATES.map((state) => redis.zrange(`${root}:${state}`, '0', '0', 'WITHSCORES')),
  ]);
  const sums = Object.entries(stored).flatMap(([field, count]) => {
    const [state, route = '', token = '', part] = field.split('|');
    const known = OPEN_STATES.find((one) => one === state);
    if (known === undefined || part !== undefined) return [];
    const amount = Array.from({ length: MOST_PARTS }, (_, index) =>
      whole(stored[`${field}|${index}`]),
    ).reduceRight((sum, one) => sum * 10n ** BigInt(PART_DIGITS) + one, 0n);
    const [chainId = '', address = ''] = token.split(':');
    return [{ state: known, route, chainId, token: address, count: Number(whole(count)), amount }];
  });
  const oldest = OPEN_STATES.map((state, index) => {
    const since = firsts[index]?.[1];
    return { state, since: since === undefined ? null : Number(since) };
  });
  return { sums, oldest };
}

function whole(text: string | undefined): bigint {
  return /^-?\d+$/.test(text ?? '') ? BigInt(text ?? '') : 0n;
}
