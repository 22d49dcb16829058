import type { z } from 'zod';
import type { Receiver } from '../config/config.ts';
import { makeTestEvent } from '../domain/events/make-event.ts';
import { createNotifier, type NotifierOptions } from '../notifiers/create-notifier.ts';
import type { TESTED } from './deliveries.ts';
import { UnknownError } from './operation.ts';

/** The receivers of a config, and the options of their notifiers. */
export type ReceiverSetup = { receivers: readonly Receiver[]; options: NotifierOptions };

/** Sends a signed test event to a receiver once, as the daemon does. It is in no log, and changes no state. */
export async function testReceiver(
  name: string,
  { receivers, options }: ReceiverSetup,
): Promise<z.infer<typeof TESTED>> {
  const receiver = receivers.find((one) => one.name === name);
  if (receiver === undefined) {
    const names = receivers.map((one) => one.name).join(', ');
    throw new UnknownError(`found the receiver "${name}", expected one of ${names}`);
  }
  const notifier = createNotifier(receiver, options);
  try {
    const nowMs = Date.now();
    const event = makeTestEvent(name, nowMs);
    const { signal } = new AbortController();
    const result = await notifier.deliver(event, { signal, nowMs });
    const { outcome, httpStatus, smtpCode, durationMs, reason, answer } = result;
    return { receiver: name, event: event.id, outcome, httpStatus, smtpCode, durationMs, reason, answer };
  } finally {
    await notifier.close();
  }
}
