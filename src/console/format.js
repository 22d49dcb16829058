/** @import { Subject } from './types.ts' */

/** A span in the two largest units. @param {number} seconds */
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (seconds < 10 && seconds % 1 !== 0) return `${seconds.toFixed(1)} s`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return units(whole, 60, 'min', 1, 's');
  if (whole < 86_400) return units(whole, 3_600, 'h', 60, 'min');
  return units(whole, 86_400, 'd', 3_600, 'h');
}

/** @param {number} whole @param {number} large @param {string} first @param {number} small @param {string} second */
function units(whole, large, first, small, second) {
  const rest = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)} ${first}${rest === 0 ? '' : ` ${rest} ${second}`}`;
}

/** The time since, or until. @param {string | null} at @param {number} nowMs */
export function ago(at, nowMs) {
  if (at === null) return '–';
  const seconds = (nowMs - Date.parse(at)) / 1_000;
  if (Math.abs(seconds) < 1) return 'now';
  return seconds > 0 ? `${span(Math.round(seconds))} ago` : `in ${span(Math.round(-seconds))}`;
}

/** A time of the day, with the day where it is not today. @param {string} at @param {number} nowMs */
export function clock(at, nowMs) {
  const time = new Date(at);
  const isToday = new Date(nowMs).toDateString() === time.toDateString();
  const options = /** @type {const} */ ({
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false,
  });
  return time.toLocaleString(undefined, isToday ? options : { month: 'short', day: 'numeric', ...options });
}

/** An amount with its token. @param {{ amount: string, units?: string | null, symbol?: string | null } | null | undefined} money */
export function amount(money) {
  if (money == null) return null;
  if (money.units == null) return `${money.amount} base units`;
  const [whole = '0', fraction] = money.units.split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  return `${grouped}${fraction === undefined ? '' : `.${fraction}`} ${money.symbol ?? ''}`.trim();
}

/** A long id with its middle omitted. @param {string} id */
export function short(id) {
  const at = id.lastIndexOf(':');
  const [prefix, own] = at === -1 ? ['', id] : [id.slice(0, at + 1), id.slice(at + 1)];
  return own.length <= 18 ? id : `${prefix}${own.slice(0, 8)}…${own.slice(-6)}`;
}

/** @param {string} word */
export function sentence(word) {
  const text = word.replaceAll('_', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const GOOD = [
  'settled',
  'filled',
  'completed',
  'published',
  'delivered',
  'active',
  'healthy',
  'available',
  'verified',
];
const BAD = [
  'failed',
  'expired',
  'refundable',
  'dead',
  'disabled',
  'unavailable',
  'error',
  'expired_unfunded',
  'disputed',
];
const WARN = [
  'retrying',
  'failing',
  'resting',
  'paused',
  'overdue',
  'refunded',
  'enabling',
  'refunded_by_user',
  'unproven',
];

/** Colour of a state; its text has the same meaning. @param {string | null} word */
export function toneOf(word) {
  if (word === null) return 'idle';
  if (GOOD.includes(word)) return 'good';
  if (BAD.includes(word)) return 'bad';
  return WARN.includes(word) ? 'warn' : 'busy';
}

/** Title of a subject, in a line. @param {Subject} subject */
export function titleOf({ amount: money, source, destination, kind, subject }) {
  const ends =
    source === null && destination === null ? null : [source ?? 'unknown', destination ?? 'unknown'];
  const text = amount(money);
  if (text === null && ends === null)
    return `${sentence(kind)} ${short(subject.slice(subject.indexOf(':') + 1))}`;
  return [text, ends?.join(' → ')].filter(Boolean).join(' · ');
}
