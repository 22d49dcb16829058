import type { SendMailOptions, SMTPSentMessageInfo } from 'nodemailer';
import type { EmailReceiver, SmtpConfig } from '../../config/config.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { NameResolver } from '../../network/resolver.ts';
import { secretsOfLogin } from '../../redact.ts';
import type { Secret } from '../../secret.ts';
import { type AttemptOptions, type AttemptResult, beginAttempt, type Notifier } from '../notifier.ts';
import { limiterWithout, type TextLimiter } from '../printable.ts';
import { type Envelope, makeDigestMessage, makeMessage } from './message.ts';
import { openMailTransport } from './transport.ts';

/** Delivers each event, or several in a digest, as one mail to all of the receiver's addresses. */
export function createEmailNotifier(
  receiver: EmailReceiver,
  { smtp, directory }: { smtp: SmtpConfig; directory: Directory },
): Notifier {
  const { name: receiverName, to, timeoutMs } = receiver;
  // The attempt's own time limit covers all phases; the limits of phases are longer.
  const names = new NameResolver({ timeoutMs });
  const closing = new AbortController();
  const { signal } = closing;
  const transport = openMailTransport({ url: smtp.url, names, timeoutMs: 2 * timeoutMs, signal });
  const limiter = limiterWithout(secretsOfSmtpUrl(smtp.url));

  async function send(
    make: (envelope: Envelope) => SendMailOptions,
    options: AttemptOptions,
  ): Promise<AttemptResult> {
    const attempt = beginAttempt(options, timeoutMs);
    attempt.throwIfCutOff();
    const { nowMs } = options;
    const remaining = stillWanted(options.remaining ?? [], to);
    const message = make({ receiverName, from: smtp.from, to, remaining, nowMs, directory });
    let verdict: SmtpOutcome;
    try {
      verdict = classifyAccepted(await transport.sendMail({ ...message, signal: attempt.signal }), limiter);
    } catch (error) {
      attempt.throwIfCutOff();
      verdict = attempt.isTimedOut() ? tooSlow(timeoutMs) : classifyError(error, limiter);
    } finally {
      attempt.end();
    }
    return {
      // A recipient that an earlier attempt omitted did not get it now either.
      ...(verdict.outcome === 'failed' && remaining.length > 0 ? { remaining } : {}),
      ...verdict,
      httpStatus: null,
      durationMs: attempt.elapsedMs(),
      retryAfterMs: verdict.outcome === 'failed' && attempt.isTimedOut() ? timeoutMs : null,
    };
  }

  return {
    deliver: (event, options) => send((envelope) => makeMessage(event, envelope), options),
    deliverDigest: (digest, options) => send((envelope) => makeDigestMessage(digest, envelope), options),
    close: async () => {
      closing.abort();
      names.close();
      transport.close();
    },
  };
}

/** The recipients that the config names. A server may spell them in another case. */
function stillWanted(recipients: readonly string[], to: readonly string[]): string[] {
  const wanted = new Set(to.map((address) => address.toLowerCase()));
  return recipients.filter((recipient) => wanted.has(recipient.toLowerCase()));
}

function tooSlow(timeoutMs: number): SmtpOutcome {
  return { outcome: 'failed', smtpCode: null, reason: `not sent within ${timeoutMs} ms`, answer: '' };
}

/** Secrets of the mail server's URL that a server or an error could repeat; its host is not one. */
export function secretsOfSmtpUrl(url: Secret): string[] {
  const address = new URL(url.reveal());
  return [...secretsOfLogin(address), ...address.searchParams.values().filter((value) => value.length >= 6)];
}

/** The part of an attempt's result that follows from the server's reply. */
export type SmtpOutcome = Pick<
  AttemptResult,
  'outcome' | 'smtpCode' | 'reason' | 'answer' | 'remaining' | 'refused'
>;

/** Commands that carry the message. A refusal of any other is about the connection or our login. */
const MESSAGE_COMMANDS: ReadonlySet<string> = new Set(['MAIL FROM', 'RCPT TO', 'DATA']);

/** Permanent codes that are not about the message: a wrong state, and those that request a login or TLS. */
const NOT_ABOUT_THE_MESSAGE: ReadonlySet<number> = new Set([503, 530, 534, 535, 538]);

/**
 * Classifies a message that the server accepted. A recipient refused for now makes the attempt fail, and the next one is for
 * those alone. A recipient refused for good is reported and counted.
 */
function classifyAccepted(info: SMTPSentMessageInfo, limiter: TextLimiter): SmtpOutcome {
  const refusals = (info.rejectedErrors ?? []).map(readSmtpError);
  const total = info.accepted.length + info.rejected.length;
  const [deferred] = refusals.filter(isForNow);
  const forGood = refusals.find((one) => !isForNow(one));
  const refusal = deferred ?? forGood;
  const accepted = `accepted for ${info.accepted.length} of ${total} recipients`;
  const words = [
    refusal === undefined ? 'accepted' : accepted,
    ...(deferred === undefined ? [] : [`refused for now: ${deferred.words}`]),
    ...(forGood === undefined ? [] : [`refused: ${forGood.words}`]),
  ].join('; ');
  return {
    outcome: deferred === undefined ? 'delivered' : 'failed',
    smtpCode: deferred?.code ?? leadingCode(info.response),
    reason: limiter.reason(words),
    answer: limiter.answer(refusal?.response ?? info.response),
    ...remainingOf(refusals),
    ...refusedOf(refusals),
  };
}

/** Classifies an error of the sending: a refusal of the message itself with a 5xx code is for good. */
function classifyError(error: unknown, limiter: TextLimiter): SmtpOutcome {
  const refusals = rejectedOf(error).map(readSmtpError);
  const { code, command, isEnvelope, response, words } = refusals.find(isForNow) ?? readSmtpError(error);
  const isRefused =
    code === null
      ? isEnvelope
      : code >= 500 && !NOT_ABOUT_THE_MESSAGE.has(code) && MESSAGE_COMMANDS.has(command);
  return {
    outcome: isRefused ? 'rejected' : 'failed',
    smtpCode: code,
    reason: limiter.reason(words),
    answer: limiter.answer(response),
    ...remainingOf(refusals),
    // A message that is rejected as a whole becomes a dead letter.
    ...(isRefused ? {} : refusedOf(refusals)),
  };
}

/** A recipient that a server refused: for now, or for good; `words` are the server's. */
export type Refusal = { recipient: string; isForNow: boolean; words: string };

/** The recipients that the server refused where it accepted the message for others. */
export function refusalsBeside(info: SMTPSentMessageInfo): Refusal[] {
  return refusalsIn(info.rejectedErrors ?? []);
}

/** The recipients that the server refused where it refused all of them; empty for any other error. */
export function refusalsOf(error: unknown): Refusal[] {
  return refusalsIn(rejectedOf(error));
}

function refusalsIn(errors: readonly unknown[]): Refusal[] {
  return errors.map(readSmtpError).flatMap((error) => {
    const { recipient, words } = error;
    return recipient === null ? [] : [{ recipient, isForNow: isForNow(error), words }];
  });
}

function remainingOf(refusals: readonly SmtpError[]): { remaining?: string[] } {
  const remaining = refusals.filter(isForNow).flatMap(({ recipient }) => recipient ?? []);
  return remaining.length === 0 ? {} : { remaining };
}

function refusedOf(refusals: readonly SmtpError[]): { refused?: number } {
  const refused = refusals.filter((one) => !isForNow(one)).length;
  return refused === 0 ? {} : { refused };
}

function isForNow({ code }: SmtpError): boolean {
  return code === null || code < 500;
}

/** The refusals of single recipients, where the server refused all of them: else the message failed. */
function rejectedOf(error: unknown): unknown[] {
  if (!(error instanceof Error) || readSmtpError(error).command !== 'RCPT TO') return [];
  return 'rejectedErrors' in error && Array.isArray(error.rejectedErrors) ? error.rejectedErrors : [];
}

/** `isEnvelope`: refused by ourselves before any reply: an invalid address, or a message over the server's announced size. */
type SmtpError = {
  code: number | null;
  command: string;
  recipient: string | null;
  isEnvelope: boolean;
  response: string;
  words: string;
};

function readSmtpError(error: unknown): SmtpError {
  const failure = error instanceof Error ? error : new Error('the mail could not be sent');
  const response = 'response' in failure && typeof failure.response === 'string' ? failure.response : '';
  const name = 'code' in failure ? failure.code : undefined;
  const command = 'command' in failure && typeof failure.command === 'string' ? failure.command : '';
  return {
    code: leadingCode(response),
    command,
    recipient: 'recipient' in failure && typeof failure.recipient === 'string' ? failure.recipient : null,
    isEnvelope: response === '' && (name === 'EENVELOPE' || name === 'EMESSAGE'),
    response,
    // For a refused message the server's message suffices; otherwise the failed step is needed too.
    words: response !== '' && MESSAGE_COMMANDS.has(command) ? response : failure.message,
  };
}

function leadingCode(response: string): number | null {
  const digits = /^\d{3}/.exec(response)?.[0];
  return digits === undefined ? null : Number(digits);
}
