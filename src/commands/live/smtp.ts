import type { Config } from '../../config/config.ts';
import { NameResolver } from '../../network/resolver.ts';
import { secretsOfSmtpUrl } from '../../notifiers/email/email.ts';
import { openMailTransport } from '../../notifiers/email/transport.ts';
import { keptWithout } from '../../notifiers/kept.ts';
import type { Secret } from '../../secret.ts';
import { type Check, messageOf } from './finding.ts';

/** For each phase of the connection; the check's own limit is for all of them. */
const PHASE_MS = 10_000;

/** True when the mail server answers, and takes the login where there is one; no mail is sent. */
export function smtpCheck({ smtp }: Config): Check {
  const name = 'SMTP';
  if (smtp === null)
    return { name, ask: async () => ({ ok: true, detail: 'not asked: the config has no smtp' }) };
  const { url } = smtp;
  return {
    name,
    ask: async (signal) => {
      const names = new NameResolver({ timeoutMs: PHASE_MS });
      let hasLoggedIn = false;
      const onLogin = (): void => {
        hasLoggedIn = true;
      };
      const transport = openMailTransport({ url, names, timeoutMs: PHASE_MS, signal, onLogin });
      try {
        await transport.verify();
        return { ok: true, detail: hasLoggedIn ? 'reachable, takes the login' : withoutLogin(url) };
      } finally {
        names.close();
        transport.close();
      }
    },
    explain: (error) => ({ ok: false, detail: keptWithout(secretsOfSmtpUrl(url)).reason(messageOf(error)) }),
  };
}

/** The library sends no login to a server that does not offer any, in the check and in deliveries alike. */
function withoutLogin(url: Secret): string {
  return new URL(url.reveal()).username === ''
    ? 'reachable; smtp.url has no login, so none was checked'
    : 'reachable, but offers no login: that of smtp.url was not checked, and is not used';
}
