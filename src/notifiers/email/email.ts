import type { EmailReceiver, SmtpConfig } from '../../config/config.ts';
import type { Secret } from '../../config/secret.ts';
import type { RenderedEvent } from '../../domain/event.ts';
import { beginAttempt } from '../attempt.ts';
import type { AttemptOptions, AttemptResult, Notifier } from '../notifier.ts';
import { decodeOrKeep, redact } from '../redact.ts';
import { classifyAccepted, classifyError, type Verdict } from './classify.ts';
import { makeMessage } from './message.ts';
import { openMailTransport } from './transport.ts';

/** Delivers each event as one mail to all of the receiver's addresses. */
export function createEmailNotifier(receiver: EmailReceiver, { smtp }: { smtp: SmtpConfig }): Notifier {
  const { name: receiverName, to, timeoutMs } = receiver;
  const transport = openMailTransport({ url: smtp.url, timeoutMs });
  const secrets = secretsOfSmtpUrl(smtp.url);

  async function deliver(event: RenderedEvent, options: AttemptOptions): Promise<AttemptResult> {
    const attempt = beginAttempt(options, timeoutMs);
    attempt.throwIfCutOff();
    const message = makeMessage(event, { receiverName, from: smtp.from, to, nowMs: options.nowMs });
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

  return { deliver, close: async () => transport.close() };
}

function tooSlow(timeoutMs: number): Verdict {
  return { outcome: 'failed', smtpCode: null, reason: `not sent within ${timeoutMs} ms`, answer: '' };
}

function secretsOfSmtpUrl(url: Secret): string[] {
  const { password } = new URL(url.reveal());
  return [url.reveal(), password, decodeOrKeep(password)];
}
