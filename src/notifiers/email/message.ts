import { createHash } from 'node:crypto';
import { domainToASCII } from 'node:url';
import type { SendMailOptions } from 'nodemailer';
import type { RenderedEvent } from '../../domain/event.ts';
import { makeNotice } from '../notice/notice.ts';
import { renderHtml, renderText } from './body.ts';

/** Who a mail is from and to, and when it is sent. */
export type Envelope = { receiverName: string; from: string; to: string[]; nowMs: number };

/**
 * The mail about an event. The same event for the same receiver always has the same `Message-ID`, so that a mail
 * sent twice is recognisable; all events of one subject refer to the same root, so that they make one thread.
 */
export function makeMessage(
  event: RenderedEvent,
  { receiverName, from, to, nowMs }: Envelope,
): SendMailOptions {
  const notice = makeNotice(event);
  const host = `intentwatch.${senderDomain(from)}`;
  const root = `<thread.${hashOf(event.data.subject.id)}.${receiverName}@${host}>`;
  const eventId = event.id.replace(/[^A-Za-z0-9_-]/g, '');
  return {
    from,
    to,
    date: new Date(nowMs),
    // A text of the upstream that looks like an encoded word would be decoded by the reader's mail program.
    subject: notice.title.replaceAll('=?', '= ?'),
    text: renderText(notice),
    html: renderHtml(notice),
    messageId: `<${eventId}.${receiverName}@${host}>`,
    inReplyTo: root,
    references: root,
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Intentwatch-Event': eventId },
  };
}

function senderDomain(from: string): string {
  const domain = /@([^@<>\s]+)>?\s*$/.exec(from)?.[1] ?? '';
  return domainToASCII(domain) || 'localhost';
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
