import { z } from 'zod';

const REMOVED = z.object({
  removed: z.int().describe('How many would go.'),
  of: z.int().describe('Of how many.'),
  ids: z.array(z.string()).describe('The first 100 of them.'),
});

/** What a config removes that removes much, as the API, the event and the log tell it. */
export const CONFIG_REMOVAL = z
  .object({
    at: z.iso.datetime(),
    held: z
      .boolean()
      .describe(
        'True for a reload that waits for its confirmation; false for a start, which has applied its file.',
      ),
    digest: z
      .string()
      .describe('Of the file with all its sections: `POST /reload?confirm=…` applies exactly this file.'),
    confirmAfter: z.number().describe('The share of `reload.confirmAfter` that was exceeded, 0 to 1.'),
    wallets: REMOVED,
    subjects: REMOVED.describe('Whatever else subscriptions name: intents, quotes, jobs, vaults and so on.'),
    receivers: REMOVED,
  })
  .meta({ id: 'ConfigRemoval' });

export type ConfigRemoval = z.infer<typeof CONFIG_REMOVAL>;
