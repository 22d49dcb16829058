import { receiverSchema } from '../../src/config/sections/receiver.ts';

const [webhook] = receiverSchema.options;

/** Attempts at once of a webhook receiver that sets no `concurrency`. */
export const DEFAULT_CONCURRENCY = webhook.shape.concurrency.parse(undefined);
