// Prints `export` lines for the values that the reader of a page fills in, from the daemon and the sandbox beside it. Fails
// until there is a settled transfer.
import { z } from 'zod';

const EVENTS = z.object({
  events: z.array(
    z.object({
      id: z.string(),
      type: z.string(),
      data: z.object({
        subject: z.object({ id: z.string() }),
        record: z.object({ sourceTx: z.object({ txHash: z.string() }).optional() }),
        transfer: z.object({ destination: z.object({ chainId: z.string() }).optional() }).optional(),
      }),
    }),
  ),
  next: z.string(),
});
const CONTROL = z.object({
  wallets: z.array(z.string()),
  quotes: z.array(z.string()),
  gaslessJobs: z.array(z.string()),
});

const headers = { authorization: `Bearer ${process.env.INTENTWATCH_TOKEN ?? ''}` };
const read = async (url: string): Promise<unknown> => (await fetch(url, { headers })).json();

/** The chains with RPC endpoints in the config of the pages. */
const CHECKED = ['1', '10', '8453', '42161'];
const SEEN = ['intent.pending', 'intent.filled', 'intent.settled'];

const { events, next } = EVENTS.parse(
  await read('http://127.0.0.1:9464/api/v1/events?type=intent.*&limit=500'),
);
const { wallets, quotes, gaslessJobs } = CONTROL.parse(await read('http://127.0.0.1:8081/subjects'));
const settled = events.find(
  ({ type, data: { subject, record, transfer } }) =>
    type === 'intent.settled' &&
    record.sourceTx !== undefined &&
    CHECKED.includes(transfer?.destination?.chainId ?? '') &&
    SEEN.every((one) => events.some((other) => other.data.subject.id === subject.id && other.type === one)),
);
if (settled === undefined) throw new Error('no transfer that was seen from its start on has settled yet');
const given = {
  INTENT_HASH: settled.data.subject.id.replace('intent:', ''),
  TX_HASH: settled.data.record.sourceTx?.txHash,
  EVENT: settled.id,
  CURSOR: next,
  QUOTE: quotes[0]?.replace('quote:', ''),
  JOB: gaslessJobs[0]?.replace('gasless:', ''),
  WALLET: wallets[0],
};
for (const [name, value] of Object.entries(given)) console.log(`export ${name}='${value ?? ''}'`);
