import { createHash } from 'node:crypto';
import { domainToASCII } from 'node:url';
import type { SendMailOptions } from 'nodemailer';
import type { RenderedEvent } from '../../domain/events/event.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { makeNotice } from '../notice/notice.ts';
import type { Digest } from '../notifier.ts';
import { renderDigestHtml, renderDigestText, renderHtml, renderText } from './body.ts';
import { makeDigestNotice } from './digest.ts';

/**
 * Who a mail is from and to, when it is sent, and what its words are made from. `remaining` are those of whom it is sent to
 * now; none: to all.
 */
export type Envelope = {
  receiverName: string;
  from: string;
  to: string[];
  remaining: readonly string[];
  nowMs: number;
  directory: Directory;
};

/**
 * The mail about an event. The same event for the same receiver always has the same `Message-ID`, so that a mail
 * sent twice is recognisable; all events of one subject refer to the same root, so that they make one thread.
 */
export function makeMessage(event: RenderedEvent, envelope: Envelope): SendMailOptions {
  const notice = makeNotice(event, envelope.directory);
  return {
    ...common(notice.title, [event], envelope),
    text: renderText(notice),
    html: renderHtml(notice),
    messageId: messageId(eventIdOf(event), envelope),
  };
}

/**
 * The mail about several events, which are given oldest first. Sent again it has the same `Message-ID`. It belongs to
 * the thread of a subject when it is about no other, else to none.
 */
export function makeDigestMessage({ id, events }: Digest, envelope: Envelope): SendMailOptions {
  const notice = makeDigestNotice(events, envelope.directory);
  return {
    ...common(notice.title, events, envelope),
    text: renderDigestText(notice),
    html: renderDigestHtml(notice),
    messageId: messageId(`digest.${id}`, envelope),
  };
}

function common(title: string, events: readonly RenderedEvent[], envelope: Envelope): SendMailOptions {
  const { from, to, remaining, nowMs } = envelope;
  const subjects = new Set(events.map(({ data }) => data.subject.id));
  const [subject] = subjects;
  const root =
    subject === undefined || subjects.size > 1 ? null : messageId(`thread.${hashOf(subject)}`, envelope);
  return {
    from,
    to,
    ...(remaining.length === 0 ? {} : { envelope: { from, to: [...remaining] } }),
    date: new Date(nowMs),
    // A text of the upstream that looks like an encoded word would be decoded by the reader's mail program.
    subject: title.replaceAll('=?', '= ?'),
    ...(root === null ? {} : { inReplyTo: root, references: root }),
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Intentwatch-Event': events.map(eventIdOf) },
  };
}

function messageId(name: string, { receiverName, from }: Envelope): string {
  return `<${name}.${receiverName}@intentwatch.${senderDomain(from)}>`;
}

function eventIdOf({ id }: RenderedEvent): string {
  return id.replace(/[^A-Za-z0-9_-]/g, '');
}

function senderDomain(from: string): string {
  const domain = /@([^@<>\s]+)>?\s*$/.exec(from)?.[1] ?? '';
  return domainToASCII(domain) || 'localhost';
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
