import { domainToASCII } from 'node:url';
import type { Logger } from 'pino';
import type { SmtpConfig } from '../config/config.ts';
import { type Day, dayAt, dayOf, previousDay } from '../domain/books/day.ts';
import type { BooksReport } from '../domain/books/report-schema.ts';
import { offsetMs } from '../domain/events/batching.ts';
import { messageOf } from '../errors.ts';
import { NameResolver } from '../network/resolver.ts';
import { type Refusal, refusalsBeside, refusalsOf, secretsOfSmtpUrl } from '../notifiers/email/email.ts';
import { mailId } from '../notifiers/email/message.ts';
import { type MailTransport, openMailTransport } from '../notifiers/email/transport.ts';
import { limiterWithout } from '../notifiers/printable.ts';
import type { Signals } from '../signals.ts';
import type { Place } from './book-store.ts';
import { sumsCsv, transfersCsv } from './formats/csv.ts';
import { count, reportHtml, reportText, titleOf } from './formats/report.ts';
import { type BooksReader, NoBooksError } from './reader.ts';
import type { Database } from './sql/database.ts';

/** Most missed reports that are sent later. */
const MOST_MISSED = 7;

/** A mail with a longer delay is marked as late. */
const LATE_MS = 3_600_000;

/** Most transfers or exceptions whose rows a mail has: some 3 MB. */
const MOST_ATTACHED = 1_000;

/** Timeout of a mail, and the time after which another process takes over a mail that was not noted as sent. */
const SENDING_MS = 30_000;
const TAKE_OVER_MS = 120_000;

/** Longest time of retries for a recipient that the server refuses for now; then it is dead. */
const REFUSED_MS = 3 * 86_400_000;

/** The dependencies of the mailer. */
export type DailyReportDeps = {
  database: Database;
  reader: BooksReader;
  smtp: SmtpConfig;
  report: { atMinute: number; to: string[] };
  zone: string;
  signals: Signals;
  log: Logger;
};

/**
 * Mails the report of each closed day. A row per day is `sending`, then `sent` or `skipped`: a day is mailed once by all
 * processes. Only a crash between the server's answer and our note leads to a second mail, with the same `Message-ID`. The
 * first day that is mailed is the last one that was closed. Each recipient that the server accepted or refused has its own
 * row: one that has the mail never gets it again, and one refused for now is tried alone.
 */
export class DailyReportMailer {
  readonly #deps: DailyReportDeps;
  readonly #names = new NameResolver({ timeoutMs: SENDING_MS });
  readonly #closing = new AbortController();
  readonly #transport: MailTransport;

  constructor(deps: DailyReportDeps) {
    this.#deps = deps;
    const { url } = deps.smtp;
    const { signal } = this.#closing;
    this.#transport = openMailTransport({ url, names: this.#names, timeoutMs: SENDING_MS, signal });
  }

  /** Sends due mails, the oldest day first. Never throws for a failure of the mail server. */
  async send(nowMs: number, place: Place | null): Promise<void> {
    if (place === null) return;
    for (const day of await this.#due(nowMs, place)) {
      if (this.#closing.signal.aborted) return;
      if (await this.#claim(day, nowMs)) await this.#sendOne(day, { nowMs, eventLog: place.log });
    }
  }

  async #due(nowMs: number, { closedMs, openedMs }: Place): Promise<Day[]> {
    const { zone, report, database } = this.#deps;
    const days: Day[] = [];
    let day = dayBefore(dayAt(nowMs, zone));
    for (let missed = 0; missed < MOST_MISSED && day.toMs > openedMs; missed += 1) {
      if (day.toMs <= closedMs && nowMs >= mailMs(day, report.atMinute)) days.unshift(day);
      day = dayBefore(day);
    }
    const rows = await database.read((sql) =>
      sql.all('SELECT day, state FROM books_mails WHERE zone = ?', [zone]),
    );
    const states = new Map(rows.map(({ day: name, state }) => [String(name), String(state)]));
    const wanted = states.size === 0 ? days.slice(-1) : days;
    const first = [...states.keys()].sort()[0] ?? '';
    return wanted.filter(({ day: name }) => name >= first && (states.get(name) ?? 'sending') === 'sending');
  }

  /** Claims a day. False where another process sends it now. */
  async #claim({ day, zone }: Day, nowMs: number): Promise<boolean> {
    return this.#deps.database.write(async (sql) => {
      const made = await sql.run(
        "INSERT INTO books_mails (day, zone, state, at_ms) VALUES (?, ?, 'sending', ?) ON CONFLICT (day, zone) DO NOTHING",
        [day, zone, nowMs],
      );
      if (made === 1) return true;
      const claimed = await sql.run(
        "UPDATE books_mails SET at_ms = ? WHERE day = ? AND zone = ? AND state = 'sending' AND at_ms <= ?",
        [nowMs, day, zone, nowMs - TAKE_OVER_MS],
      );
      return claimed === 1;
    });
  }

  /** `eventLog`: name of the event log, which no other installation has. */
  async #sendOne(day: Day, { nowMs, eventLog }: { nowMs: number; eventLog: string }): Promise<void> {
    const { reader, report: wanted, smtp, signals, log } = this.#deps;
    const report = await reader.report({ day: day.day, zone: day.zone }, nowMs).catch((error: unknown) => {
      if (error instanceof NoBooksError) return error;
      throw error;
    });
    if (report instanceof NoBooksError) {
      // The books have removed it meanwhile: no later try finds it, and those of other days go on.
      await this.#note(day, 'skipped');
      signals.emit('books.mail', { outcome: 'skipped' });
      log.error({ day: day.day, reason: report.message }, 'books.mail_skipped');
      return;
    }
    const lateMs = nowMs - mailMs(day, wanted.atMinute);
    const waiting = await this.#waiting(day, nowMs);
    const limiter = limiterWithout(secretsOfSmtpUrl(smtp.url));
    let refusals: Refusal[] = [];
    try {
      if (waiting.size > 0) {
        const info = await this.#transport.sendMail({
          from: smtp.from,
          to: wanted.to,
          envelope: { from: smtp.from, to: [...waiting.keys()] },
          date: new Date(nowMs),
          messageId: mailId(
            `books.${day.day}.${day.zone.replaceAll(/[^A-Za-z0-9]/g, '-')}.${eventLog}`,
            smtp.from,
          ),
          ...mailOf(report, lateMs > LATE_MS),
          signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(SENDING_MS)]),
        });
        refusals = refusalsBeside(info);
      }
    } catch (error) {
      // We ended it ourselves: another process sends it.
      if (this.#closing.signal.aborted) return;
      refusals = refusalsOf(error);
      if (refusals.length === 0) {
        const reason = limiter.reason(messageOf(error));
        signals.emit('books.mail', { outcome: 'failed' });
        log.error({ day: day.day, reason }, 'books.mail_failed');
        return;
      }
    }
    const answers = answersOf(waiting, { refusals, nowMs });
    await this.#noteRecipients(day, answers);
    for (const { recipient, state, words } of answers) {
      if (state === 'accepted') continue;
      // The place in the config's list: the log has no mail address.
      const line = {
        day: day.day,
        recipient: wanted.to.indexOf(recipient) + 1,
        reason: limiter.reason(words),
      };
      const isDead = state === 'dead';
      signals.emit('books.mail', { outcome: isDead ? 'dead' : 'failed' });
      log.error(line, isDead ? 'books.mail_dead' : 'books.mail_failed');
    }
    if (answers.some(({ state }) => state === 'refused')) return;
    await this.#note(day, 'sent');
    signals.emit('books.mail', { outcome: 'sent' });
    log.info(
      { day: day.day, transfers: report.transfers.length, exceptions: report.exceptions.length },
      'books.mailed',
    );
  }

  /** Returns the recipients that neither have the mail nor are dead, each with the start of its refusals; now for most. */
  async #waiting({ day, zone }: Day, nowMs: number): Promise<Map<string, number>> {
    const rows = await this.#deps.database.read((sql) =>
      sql.all('SELECT recipient, state, at_ms FROM books_mail_recipients WHERE day = ? AND zone = ?', [
        day,
        zone,
      ]),
    );
    const answered = new Map(rows.map((row) => [String(row.recipient), row]));
    const waiting = new Map<string, number>();
    for (const recipient of this.#deps.report.to) {
      const row = answered.get(recipient);
      if (row === undefined) waiting.set(recipient, nowMs);
      else if (row.state === 'refused') waiting.set(recipient, Number(row.at_ms));
    }
    return waiting;
  }

  async #noteRecipients({ day, zone }: Day, answers: readonly RecipientAnswer[]): Promise<void> {
    await this.#deps.database.write(async (sql) => {
      for (const { recipient, state, atMs } of answers) {
        await sql.run(
          `INSERT INTO books_mail_recipients (day, zone, recipient, state, at_ms) VALUES (?, ?, ?, ?, ?)
             ON CONFLICT (day, zone, recipient) DO UPDATE SET state = excluded.state, at_ms = excluded.at_ms`,
          [day, zone, recipient, state, atMs],
        );
      }
    });
  }

  async #note({ day, zone }: Day, state: 'sent' | 'skipped'): Promise<void> {
    const noted = 'UPDATE books_mails SET state = ? WHERE day = ? AND zone = ?';
    await this.#deps.database.write((sql) => sql.run(noted, [state, day, zone]));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#names.close();
    this.#transport.close();
  }
}

type RecipientAnswer = {
  recipient: string;
  state: 'accepted' | 'refused' | 'dead';
  atMs: number;
  words: string;
};

/** Returns the answers of the server for each recipient. One that is refused for good, or for too long, is dead. */
function answersOf(
  waiting: ReadonlyMap<string, number>,
  { refusals, nowMs }: { refusals: readonly Refusal[]; nowMs: number },
): RecipientAnswer[] {
  const refused = new Map(refusals.map((refusal) => [addressKey(refusal.recipient), refusal]));
  return [...waiting].map(([recipient, sinceMs]) => {
    const refusal = refused.get(addressKey(recipient));
    if (refusal === undefined) return { recipient, state: 'accepted', atMs: nowMs, words: '' };
    const isDead = !refusal.isForNow || nowMs - sinceMs >= REFUSED_MS;
    return { recipient, state: isDead ? 'dead' : 'refused', atMs: sinceMs, words: refusal.words };
  });
}

/** Normalises an address for comparison: nodemailer names refused ones with the host name in ASCII. */
function addressKey(address: string): string {
  const at = address.lastIndexOf('@') + 1;
  return `${address.slice(0, at)}${domainToASCII(address.slice(at))}`.toLowerCase();
}

/** Builds the mail about a day, with its files; that of a very big day omits the files that grow with it. */
export function mailOf(
  report: BooksReport,
  isLate: boolean,
): { subject: string; text: string; attachments: File[] } {
  const { day, zone, transfers, exceptions } = report;
  const late = 'This mail is late: it could not be sent on its morning.\n\n';
  const name = `books-${day}`;
  const isBig = transfers.length > MOST_ATTACHED || exceptions.length > MOST_ATTACHED;
  const left = `The rows are not attached: ${count(transfers.length, 'transfer')} are too many for a mail. Read them with
  intentwatch reconcile --day ${day} --zone ${zone} --format csv
or at /api/v1/books/${day}?zone=${encodeURIComponent(zone)}&format=csv\n\n`;
  const file = (end: string, rows: Iterable<string>, type: string): File => {
    return {
      filename: `${name}${end}`,
      content: [...rows].join(''),
      contentType: `text/${type}; charset=utf-8`,
    };
  };
  const sums = file('-sums.csv', sumsCsv(report), 'csv');
  return {
    subject: `${isLate ? 'Late: ' : ''}${titleOf(report)}`.replaceAll('=?', '= ?'),
    text: `${isLate ? late : ''}${isBig ? left : ''}${reportText(report)}`,
    attachments: isBig
      ? [sums]
      : [file('.csv', transfersCsv(report), 'csv'), sums, file('.html', reportHtml(report), 'html')],
  };
}

type File = { filename: string; content: string; contentType: string };

/** Returns the due time of the mail about a day: a time of the next day, by the clocks of its zone. */
export function mailMs({ toMs, zone }: Day, atMinute: number): number {
  const plainMs = toMs + atMinute * 60_000;
  return plainMs + offsetMs(zone, toMs) - offsetMs(zone, plainMs);
}

function dayBefore({ day, zone, fromMs }: Day): Day {
  // A zone may have skipped a day.
  const before = dayAt(fromMs - 1, zone);
  return before.day === day ? dayOf(previousDay(day), zone) : before;
}
