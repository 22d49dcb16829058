import type { Receiver, SmtpConfig } from '../config/config.ts';
import { COMMON_NAMES, type Directory } from '../domain/transfers/chains.ts';
import { createEmailNotifier } from './email/email.ts';
import type { EventUrl, Notifier } from './notifier.ts';
import { createPostgresNotifier } from './postgres/postgres.ts';
import { createWebhookNotifier } from './webhook/webhook.ts';

/** Dependencies of notifiers: mail server, version, link to the whole of a shortened event (null: none), and chain names. */
export type NotifierOptions = {
  smtp: SmtpConfig | null;
  version: string;
  eventUrl: EventUrl | null;
  directory?: Directory;
};

/** Creates the notifier of a receiver. Throws for an e-mail receiver without `smtp`, which a checked config never has. */
export function createNotifier(receiver: Receiver, options: NotifierOptions): Notifier {
  const { smtp, version, eventUrl, directory = COMMON_NAMES } = options;
  switch (receiver.type) {
    case 'webhook':
      return createWebhookNotifier(receiver, { version, eventUrl, directory });
    case 'email':
      if (smtp === null) throw new Error(`receiver ${receiver.name} sends mail, but the config has no smtp`);
      return createEmailNotifier(receiver, { smtp, directory });
    case 'postgres':
      return createPostgresNotifier(receiver);
    default:
      return receiver satisfies never;
  }
}
