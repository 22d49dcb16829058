import type { SendMailOptions } from 'nodemailer';
import type { EmailReceiver, SmtpConfig } from '../../config/config.ts';
import type { Secret } from '../../config/secret.ts';
import type { Directory } from '../../domain/chains.ts';
import { NameResolver } from '../../network/resolver.ts';
import { beginAttempt } from '../attempt.ts';
import type { AttemptOptions, AttemptResult, Notifier } from '../notifier.ts';
import { decodeOrKeep, redact } from '../redact.ts';
import { classifyAccepted, classifyError, type Verdict } from './classify.ts';
import { type Envelope, makeDigestMessage, makeMessage } from './message.ts';
import { openMailTransport } from './transport.ts';

/** Delivers each event, or several in a digest, as one mail to all of the receiver's addresses. */
export function createEmailNotifier(
  receiver: EmailReceiver,
  { smtp, directory }: { smtp: SmtpConfig; directory: Directory },
): Notifier {
  const { name: receiverName, to, timeoutMs } = receiver;
  // The attempt's own time limit covers all phases; those of the phases only stand behind it.
  const names = new NameResolver({ timeoutMs });
  const closing = new AbortController();
  const { signal } = closing;
  const transport = openMailTransport({ url: smtp.url, names, timeoutMs: 2 * timeoutMs, signal });
  const secrets = secretsOfSmtpUrl(smtp.url);

  async function send(
    make: (envelope: Envelope) => SendMailOptions,
    options: AttemptOptions,
  ): Promise<AttemptResult> {
    const attempt = beginAttempt(options, timeoutMs);
    attempt.throwIfCutOff();
    const message = make({ receiverName, from: smtp.from, to, nowMs: options.nowMs, directory });
    let verdict: Verdict;
    try {
      verdict = classifyAccepted(await transport.sendMail({ ...message, signal: attempt.signal }));
    } catch (error) {
      attempt.throwIfCutOff();
      verdict = attempt.isTimedOut() ? tooSlow(timeoutMs) : classifyError(error);
    }
    return {
      ...verdict,
      httpStatus: null,
      reason: redact(verdict.reason, secrets),
      answer: redact(verdict.answer, secrets),
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

function tooSlow(timeoutMs: number): Verdict {
  return { outcome: 'failed', smtpCode: null, reason: `not sent within ${timeoutMs} ms`, answer: '' };
}

function secretsOfSmtpUrl(url: Secret): string[] {
  const { password } = new URL(url.reveal());
  return [url.reveal(), password, decodeOrKeep(password)];
}
