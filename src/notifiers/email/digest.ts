import type { RenderedEvent } from '../../domain/events/event.ts';
import { isTrouble } from '../../domain/events/event-types.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { briefRows } from '../notice/notice.ts';
import type { Row } from '../notice/row.ts';
import { formatTime } from '../notice/time.ts';
import { renderAbout, renderElapsed, renderHappening, renderTitle } from '../notice/title.ts';
import { shownTransfer } from '../notice/transfer-rows.ts';
import { printableLine } from '../printable.ts';

/** What happened to one subject: a line per event, oldest first, then what else there is to say of it. */
export type DigestGroup = { heading: string; lines: string[]; rows: Row[] };

/** What a digest says, before it becomes text or HTML. Every string is one printable line. */
export type DigestNotice = { title: string; summary: string; groups: DigestGroup[] };

const MAX_TITLE_LENGTH = 150;

/**
 * Says what several events say, subject by subject. A subject whose last event may need somebody comes first, then they
 * follow in the order of their first events. `events` are given oldest first, and there is at least one.
 */
export function makeDigestNotice(events: readonly RenderedEvent[], directory: Directory): DigestNotice {
  const bySubject = [...Map.groupBy(events, ({ data }) => data.subject.id).values()];
  const isTroubled = (group: readonly RenderedEvent[]) =>
    group.some((event, index) => index === group.length - 1 && isTrouble(event.type));
  const ordered = [...bySubject.filter(isTroubled), ...bySubject.filter((group) => !isTroubled(group))];
  const [only, ...others] = ordered;
  const last = only?.at(-1);
  const title =
    last !== undefined && others.length === 0
      ? renderOneSubject(last, { count: events.length, directory })
      : renderCounts(ordered.flatMap((group) => group.at(-1) ?? []));
  const form = timeForm(events);
  return {
    title,
    summary: renderSummary(events, ordered.length),
    groups: ordered.map((group) => makeGroup(group, { directory, form })),
  };
}

/** The last of several events of one subject says where it stands. */
function renderOneSubject(last: RenderedEvent, view: { count: number; directory: Directory }): string {
  const title = renderTitle(last, {
    transfer: shownTransfer(last),
    directory: view.directory,
  });
  const end = view.count === 1 ? '' : ` (${view.count} notices)`;
  return `${printableLine(title, MAX_TITLE_LENGTH - end.length)}${end}`;
}

/** `Digest: 1 failed, 2 still pending, 9 filled`: where each subject stands, troubles first, then what there is most of. */
function renderCounts(lasts: readonly RenderedEvent[]): string {
  const kinds = [...Map.groupBy(lasts, renderHappening)]
    .map(([happening, same]) => ({
      text: `${same.length} ${happening.charAt(0).toLowerCase()}${happening.slice(1)}`,
      count: same.length,
      trouble: same.some(({ type }) => isTrouble(type)),
    }))
    .sort((one, other) => Number(other.trouble) - Number(one.trouble) || other.count - one.count);
  const head = 'Digest: ';
  let shown = kinds.length;
  for (; shown > 1; shown -= 1) {
    const text = join(kinds.slice(0, shown), kinds.slice(shown));
    if (head.length + text.length <= MAX_TITLE_LENGTH) break;
  }
  return printableLine(`${head}${join(kinds.slice(0, shown), kinds.slice(shown))}`, MAX_TITLE_LENGTH);
}

function join(shown: readonly { text: string }[], rest: readonly { count: number }[]): string {
  const more = rest.reduce((sum, { count }) => sum + count, 0);
  return [...shown.map(({ text }) => text), ...(more === 0 ? [] : [`${more} others`])].join(', ');
}

function renderSummary(events: readonly RenderedEvent[], subjects: number): string {
  const [first, last] = [events[0], events.at(-1)].map((event) => formatTime(timeOf(event)) ?? '');
  const what = subjects === 1 ? 'one subject' : `${subjects} subjects`;
  const when = first === last ? `at ${first}` : `from ${first} to ${last}`;
  const order = subjects === 1 ? '' : ' What may need somebody comes first.';
  return printableLine(
    `${events.length === 1 ? 'One event' : `${events.length} events`} of ${what}, ${when}.${order}`,
  );
}

function makeGroup(
  group: readonly RenderedEvent[],
  { directory, form }: { directory: Directory; form: (event: RenderedEvent) => string },
): DigestGroup {
  // What a later record leaves out an earlier one may have reported.
  const reported = group.map((event) => renderAbout(event, { transfer: shownTransfer(event), directory }));
  const heading = reported.reduce((best, about) => (about.length > best.length ? about : best), '');
  const last = group.at(-1);
  return {
    heading: printableLine(heading === '' ? (last?.data.subject.id ?? '') : heading, MAX_TITLE_LENGTH),
    lines: group.map((event) => {
      const took = renderElapsed(event);
      return `${form(event)}  ${renderHappening(event)}${took === '' ? '' : `, ${took}`}`;
    }),
    rows: last === undefined ? [] : briefRows(last, directory),
  };
}

/** Times of one day need no date. */
function timeForm(events: readonly RenderedEvent[]): (event: RenderedEvent) => string {
  const full = (event: RenderedEvent | undefined) => formatTime(timeOf(event)) ?? '';
  const days = new Set(events.map((event) => full(event).slice(0, 10)));
  return (event) =>
    full(event)
      .slice(days.size === 1 ? 11 : 0)
      .replace(/ UTC$/, '');
}

function timeOf(event: RenderedEvent | undefined): number {
  return Date.parse(event?.timestamp ?? '');
}
