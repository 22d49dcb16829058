import type { SendMailOptions } from 'nodemailer';
import type { EmailReceiver, SmtpConfig } from '../../config/config.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { NameResolver } from '../../network/resolver.ts';
import { secretsOfLogin } from '../../redact.ts';
import type { Secret } from '../../secret.ts';
import { beginAttempt } from '../attempt.ts';
import type { AttemptOptions, AttemptResult, Notifier } from '../notifier.ts';
import { limiterWithout } from '../printable.ts';
import { classifyAccepted, classifyError, type SmtpOutcome } from './classify.ts';
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
