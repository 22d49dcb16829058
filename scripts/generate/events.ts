import { z } from 'zod';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { RENDERED_EVENT } from '../../src/domain/events/event-schema.ts';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';
import { asyncApi } from './asyncapi.ts';
import { isSchema, type Schema } from './config-page.ts';
import { exampleEvents } from './event-examples.ts';
import { FACT_KINDS, factKindOfType } from './fact-kinds.ts';

/** Generates the event catalogue: page, JSON Schema, AsyncAPI document, examples. Paths within the repository. */
export async function generateEventFiles(): Promise<{ path: string; content: string }[]> {
  const schema = z.toJSONSchema(RENDERED_EVENT, { io: 'input' });
  const examples = exampleEvents();
  const files = [{ path: 'docs/events/schema.json', content: jsonFile(schema) }];
  for (const type of EVENT_TYPES) {
    const example = examples.get(type);
    if (example === undefined)
      throw new Error(`found no example of ${type}, expected a story that makes one`);
    files.push({ path: `docs/events/${type}.json`, content: jsonFile(example) });
  }
  const document = asyncApi({ examples, meaningOf: (type) => MEANINGS.get(type)?.[0] ?? '' });
  return [
    { path: 'docs/events.md', content: renderPage(schema, examples) },
    { path: 'docs/asyncapi.json', content: jsonFile(document) },
    ...files,
  ];
}

/** JSON in the form of this repository's formatter: short lists on one line. */
function jsonFile(value: object): string {
  const text = JSON.stringify(value, null, 2).replace(
    /^(.*)\[\n((?:[^[\]{}"]|"[^"\n]*")*?)\n *\](,?)$/gm,
    (expanded, head, items, comma) => {
      const line = `${head}[${items.trim().replaceAll(/\n */g, ' ')}]${comma}`;
      return line.length <= 110 ? line : expanded;
    },
  );
  return `${text}\n`;
}

// ---- Meanings of the types --------------------------------------------------------------------------------------

const CONFIRMED = 'exact polls have reported it for `polling.confirmAfter` (10 min unless configured)';
const NOT_ALONE = 'does not come in this version: a deposit address is only seen on pages of wallets';

/** Meaning and occasion of an event: one line per type, in the columns of the page. */
const MEANINGS = table(`
intent.pending | The transfer is under way. | it is first seen, or goes back to \`pending\`
intent.filled | It was delivered on the destination chain. | the upstream reports the status; hashes and amounts may follow as \`intent.updated\`
intent.settled | It is delivered and closed; tracking ends. | minutes to hours after \`filled\`
intent.expired | It was not delivered in time. | the upstream reports the status; a refund may follow
intent.refundable | The money can be claimed back: by \`data.transfer.refundRecipient\` where it is known (the open quoting service reports it), else it is not reported; \`data.transfer.funder\` paid it in. The interface does not describe how: it names no request and no call for it. Contact the service, with the id. | the upstream reports the status
intent.refunded | The money went back; tracking ends. | the upstream reports the status
intent.failed | The upstream calls it failed. | the upstream reports the status; it is watched for 7 more days, for a refund may follow
intent.updated | Something other than the status changed: see \`changes\`. | a member of the record appears or changes
intent.step_failed | A step, an intent or a sub-status has failed while the status is unchanged: \`data.transfer.failed\` names it, with the reason where the record has one. | one more of them has a word for a failure than before; this word goes before \`error\` and \`refund_sent\` where one answer shows several
intent.error | An error text appeared while the status is unchanged: \`data.transfer.error\`. | \`record.error\` appears
intent.refund_sent | A refund transaction appeared while the status is unchanged: \`data.transfer.refund\`. | a step of the record shows one more than before
intent.unknown | The upstream no longer knows a transfer that it knew. | ${CONFIRMED}
intent.short | Less was delivered than the minimum of its quote: \`data.transfer.shortfall\` has the amount. | once, with the first record that shows the delivery; only where the quote was imported and is valid, for amounts of one token on one chain
intent.verified | The chain shows a payment that the upstream stated: \`data.proof\` names it, and what of it was checked. | once per statement, when the block is final; only on chains with RPC endpoints. The claim is that the log moved so much
intent.disputed | The chain does not show a payment as it was stated: \`data.proof.reason\` has the reason. | likewise; only when two endpoints on two hosts agree
intent.unproven | The chain does not have the stated transaction, or nothing there ties it to the transfer (\`reason: not-tied\`). | an hour after it should have been final, when two synced endpoints do not have it; \`not-tied\` when the delivery of a local intent is final and its burn is missing, not pinned or of version 2
intent.overdue | It is still under way after \`overdueAfter\`, or after what was learned of its route. | once per stage, \`overdueAfter\` after the first \`updatedAt\` seen in it

quote.active | The quote is known and not funded. | it is first seen
quote.submitted | The quote was funded. | the upstream reports the status; the intents it names are watched from then on
quote.updated | Something other than the status changed, such as the transactions. | a member of the record appears or changes
quote.step_failed | A step, an intent or a sub-status has failed while the status is unchanged: \`data.transfer.failed\` names it, with the reason where the record has one. | one more of them has a word for a failure than before; this word goes before \`error\` and \`refund_sent\` where one answer shows several
quote.error | An error text appeared while the status is unchanged: \`data.transfer.error\`. | \`record.error\` appears
quote.refund_sent | A refund transaction appeared while the status is unchanged: \`data.transfer.refund\`. | a step of the record shows one more than before
quote.expiring | The quote expires soon and is not funded: \`expiresAt\` is in \`data.record\`. | once, \`warnBefore\` ahead of the \`expiresAt\` of an imported quote that is valid; only for subscriptions that configure \`warnBefore\`
quote.expired | The quote was not funded before its \`expiresAt\`, which is in \`data.record\`. | the clock passes \`expiresAt\` of an imported quote that is valid, and a poll after it still shows no funding
quote.signature_invalid | The imported quote is not as the upstream signed it: \`data.record.signature\` names the part and the reason. | it is verified, before anything else; it is watched nevertheless
quote.unknown | The upstream no longer knows a quote that it knew. | ${CONFIRMED}

gasless.pending | The job is queued. | it is first seen
gasless.submitted | The job was sent (status endpoint). | the upstream reports the status
gasless.published | The intent exists (status endpoint); it is watched from then on. | the upstream reports the status
gasless.permit_sent | The permit was sent (deposit gateway's jobs). | the upstream reports the status
gasless.completed | The transfer was sent (deposit gateway's jobs); tracking ends. | the upstream reports the status
gasless.failed | The job failed. | the upstream reports the status
gasless.updated | Something other than the status changed, such as the hashes; or a job without a status (\`data.status\` is empty). | a member of the record appears or changes
gasless.step_failed | A step, an intent or a sub-status has failed while the status is unchanged: \`data.transfer.failed\` names it, with the reason where the record has one. | one more of them has a word for a failure than before; this word goes before \`error\` where one answer shows both
gasless.error | An error text appeared while the status is unchanged, or before there is one: \`data.transfer.error\`. | \`record.error\` appears
gasless.unknown | The upstream no longer knows a job that it knew. | ${CONFIRMED}
gasless.overdue | The job is still under way after \`overdueAfter\`. | once per stage

vault.pending | The vault waits to be funded. | it is first seen
vault.funding_detected | Money has arrived in the vault. | the upstream reports the state
vault.published | The intent exists and is watched from then on; tracking of the vault ends. | the upstream reports the state
vault.expired_unfunded | The upstream calls the vault expired and unfunded. | the upstream reports the state; \`vault.expired\` usually came before
vault.failed | The upstream calls the vault failed. | the upstream reports the state
vault.refunded_by_user | The money was withdrawn; tracking ends. | the upstream reports the state
vault.recovery_published | The money was recovered; tracking ends. | the upstream reports the state
vault.updated | Something other than the state changed; or a vault without a state (\`data.status\` is empty). | a member of the record appears or changes
vault.error | An error text appeared while the status is unchanged: \`data.transfer.error\`. | \`record.error\` appears
vault.unknown | The upstream no longer knows a vault that it knew. | ${CONFIRMED}
vault.overdue | Funded, but still not published after \`overdueAfter\`. | once per stage
vault.expiring | The vault expires soon and is not funded. | once, \`warnBefore\` ahead of \`deadline\` while the vault is \`PENDING\`; only for subscriptions that configure \`warnBefore\`
vault.expired | The clock passed \`deadline\`, and the vault is still \`PENDING\`. | about a second after the deadline; the upstream may report nothing yet

deposit-address.pending | A transfer to a deposit address is under way. | a page of a wallet shows it
deposit-address.filled | It was delivered on the destination chain. | a page of a wallet shows it
deposit-address.settled | It is delivered and closed. | a page of a wallet shows it
deposit-address.expired | It was not delivered in time. | a page of a wallet shows it
deposit-address.refundable | The money can be claimed back. | a page of a wallet shows it
deposit-address.refunded | The money went back. | a page of a wallet shows it
deposit-address.failed | The upstream calls it failed. | a page of a wallet shows it
deposit-address.updated | Something other than the status changed. | a page of a wallet shows it
deposit-address.step_failed | A step, an intent or a sub-status has failed while the status is unchanged: \`data.transfer.failed\` names it, with the reason where the record has one. | one more of them has a word for a failure than before; this word goes before \`error\` and \`refund_sent\` where one answer shows several
deposit-address.error | An error text appeared while the status is unchanged: \`data.transfer.error\`. | \`record.error\` appears
deposit-address.refund_sent | A refund transaction appeared while the status is unchanged: \`data.transfer.refund\`. | a step of the record shows one more than before
deposit-address.unknown | The upstream no longer knows it. | ${NOT_ALONE}
deposit-address.overdue | It is still under way after \`overdueAfter\`. | ${NOT_ALONE}

route.available | At least one solver quotes the route; \`record.output\` is the best. | the first answer shows a quote, a quote comes back, or the config gives the name to another route
route.unavailable | No solver quotes the route: the service answered, with an empty list. | the first answer shows none, or the last quote goes. A service that fails, or quotes that cannot be read, make no event
route.moved | The output differs from \`record.previousOutput\`, which was reported last, by more than \`movedBy\`. | an answer shows it; a slow drift counts as much as a jump

upstream.unreachable | An endpoint group of the upstream gives no usable answers. | three different subjects, or all there are, fail and none succeeds between: for 10 s, or with a \`Retry-After\` of as much
upstream.reachable | It answers again. | a request succeeds after \`upstream.unreachable\`
upstream.unauthorized | It refuses the API key (401 or 403). | at once where the answer reports that the key is invalid or has expired, else when three different subjects, or all there are, are refused; then one probe every 15 s. A 403 to a request that carries no key (vaults, gateway jobs, open quotes) is about its path: \`upstream.unreachable\`
upstream.authorized | It takes the key again. | a request succeeds after \`upstream.unauthorized\`
upstream.record_too_large | A record of the wallet \`record.wallet\` is too large to be read; \`record.id\` names it where that can be read. Its changes are not seen, nor what a listing shows behind it. | a page of the wallet with \`limit=1\` is beyond the [limits](limits.md); once for each record
upstream.cursor_expired | A cursor of the wallet \`record.wallet\` has expired while its pages were read back to back: \`record.pages\` pages do not come within the \`record.lifetimeSeconds\` that it lived. \`record.neededRequestsPerSecond\` would do, in place of \`record.requestsPerSecond\`. | the cursor is refused and the budget is too small; again only when a larger rate is needed, or after a day

receiver.failing | Deliveries to a receiver fail. | four failures in a row, of three different deliveries or after ten minutes without a success
receiver.disabled | Nothing is attempted any more; its events are stored for \`retention\`. \`record.by\` is the reason: \`failures\`, \`gone\` (an answer of 410) or \`operator\`. | \`disableAfter\` of nothing but failures, at least four of them; a 410; \`receivers disable\`
receiver.recovered | It takes events again. | after one of the two above, five successes in a row, or one after which nothing is open; for a disabled one after \`receivers enable\`
receiver.paused | Its operator has paused it: its events are stored for \`retention\`, and wait. | at once
receiver.resumed | Its operator has resumed it. | at once
receiver.events_dropped | Events are lost for the receiver, for the reason in \`record.reason\`: their \`retention\` has ended, or Redis has lost them. \`record.count\` is how many, \`record.deliveries\` names up to 100. | within 5 s of the first of them, in as many events as it takes to name all; then once an hour, with all that was lost meanwhile

intentwatch.suspension_ended | What left the config was removed: its \`removal.graceSpan\` is over (\`record.reason\` is \`span-over\`), \`intentwatch remove\` ended it (\`removed\`), or its events have left the log (\`retention\`). \`subjects\` and \`subscriptions\` name what was removed, \`events\` how many events had waited for it, \`eventIds\` the first 100 of them; \`GET /suspended/dropped\` and \`intentwatch suspended --dropped\` list all. | once for all that one reload had left out, when it ends
intentwatch.storage_truncated | The file of the embedded Redis had lost its end, or commands before a gap that a full disk left: these writes are lost. \`record.lostBytes\` is how many bytes at least; they were written between \`record.lostFrom\` (null where it is not known) and \`record.lostUntil\`. | at the start that found it, or when the embedded Redis was started again
intentwatch.quote_domain_unproven | A quote was not signed by its chain's signer under \`record.quoteDomain\`, and no quote of this deployment has verified under that domain yet. The deployment may have another one: \`upstream.quoteDomain\`. Until then such quotes are unverified, not invalid, and route prices have \`unverified: true\`. | the first such quote; once for each domain of a deployment
intentwatch.large_removal | A config removes more than the share \`record.confirmAfter\` of the wallets, of the other named subjects or of the receivers. With \`record.held\` true it is a reload, and nothing is removed until \`intentwatch reload --confirm\` with \`record.digest\`; with false a start has applied it. \`ids\` has the first 100 of each. | once for each such file, however many processes read it
intentwatch.storage_restored | Redis went back: to an older copy of its data, to a replica that was behind, or to nothing. What was written after \`record.lostFrom\` (null: all) up to \`record.lostUntil\` (null where it is not known) is lost, and nothing was stored until \`record.resumedAt\`: a state that came and went before may be missing. \`record.reason\` names the cause. \`record.epoch\` has begun. | within 5 s, or at the start that found it; after what the config wants was written anew
intentwatch.clock_jumped | The clock of Redis has jumped by \`record.aheadSeconds\` (below 0: back) against the monotonic clock of the processes. \`record.confirmedTime\` is the last time that is certain. Nothing expires, and reminders and closings of the books wait, until the \`Date\` of three responses confirms the time of Redis, or it is right again. | within seconds; once for each jump
intentwatch.clock_differs | \`record.clock\` has been off by \`record.aheadSeconds\` for an hour: \`process\` or \`upstream\` against the time of Redis, or \`redis\` against the time that was confirmed before, or against the upstream. Reminders and closings of the books waited; they go by the time of Redis from now on. | after an hour; once until the clocks agree again
intentwatch.test | A test. Nothing has happened. | somebody types \`intentwatch test RECEIVER\`; it passes by the filters
`);

function table(text: string): ReadonlyMap<string, readonly string[]> {
  const lines = text.split('\n').filter((line) => line !== '');
  return new Map(lines.map((line) => line.split(' | ')).map(([key = '', ...cells]) => [key, cells]));
}

// ---- The page ---------------------------------------------------------------------------------------------------

/** The sections of the page: the kind of its types, title, text. */
const SECTIONS = table(`
intent | Transfers | An intent that a subscription names, that a page of its wallets showed, or that its quotes, jobs and vaults name. A transfer over several intents (a swap after the bridge) or to a deposit address is on a wallet's page with a record for each: each has events of its own.
quote | Quotes | A quote that a subscription names. One that is named by its id alone has no \`expiresAt\` and no signature: only an imported one (\`{ file }\`) gives \`quote.expiring\`, \`quote.expired\` and \`quote.signature_invalid\`. \`data.status\` of these is \`unknown\` where the upstream has not shown the quote.
gasless | Gasless jobs | A job that a subscription names, at the status endpoint (\`gasless:<uuid>\`) or the deposit gateway (\`gasless:gateway:<id>\`).
vault | Deposit vaults | A vault that a subscription names. Its \`data.status\` is what the upstream calls \`state\`.
deposit-address | Deposit addresses | A record of this kind on a page of a subscribed wallet.
route | Routes | A route that a subscription names, by \`route:<name>\`, or \`route:v1:<name>\` where it is priced with the key. The record is made from an answer of the \`service\` (\`open\`, \`v1\`), and its amounts are base units: \`output\` and \`minimumOutput\` of the best quote, \`previousOutput\` (reported before this), \`outputPerInput\` (in token units where both \`decimals\` are known, else in base units), \`fees\` (a sum per token), \`fillEstimateSeconds\`, \`solvers\` (how many quote), \`unverified\` (true while its signature cannot be verified, see \`upstream.quoteDomain\`). \`quote\` is the best quote as the service gave it, but for \`encodedRoute\` or \`execution\`, which is long and of use only to whoever funds this very quote; a quote that is longer than 12,000 characters even so is left out (null). New quote ids, expiry times, another solver at much the same price, and smaller moves make no event.
upstream | The upstream | For whoever runs the daemon; \`data.subject.id\` is \`upstream:status\`, \`upstream:gateway\`, \`upstream:quotes\`, \`upstream:partner-quotes\` or \`upstream:open-status\`.
receiver | Receivers | For whoever runs the daemon; \`data.subject.id\` is \`receiver:<name>\`. They go to the other receivers, never to the one they are about.
intentwatch | The daemon | For whoever runs the daemon, and \`intentwatch.test\` to see a receiver work.
`);

const INTRODUCTION = `# Events

<!-- Generated by \`npm run generate\` from src/domain. Change it there, or in scripts/generate/events.ts. -->

An event reports that a watched thing changed. It is made once, stored for \`retention\`, and delivered to every receiver that
matches it. A webhook's body is the event as JSON; a mail has the same in words.

- **Who gets it.** The receivers of the subscriptions that lead to the subject, where the receiver's \`events\` let the
  type through (a webhook's default is \`["*"]\`, a mail's is \`["*", "!*.updated"]\`). \`upstream.*\`, \`receiver.*\` and
  \`intentwatch.*\` go to every receiver whose \`events\` name them (\`"upstream.*"\`), whatever it is subscribed to, and to no
  other: \`"*"\` does not include them.
- **Twice.** The same event can come twice, always with the same \`id\`. Store the ids that you have handled.
- **Order.** Events of one subject can overtake each other, after a retry for example. \`data.sequence\` orders them. An event
  is stale only where you have handled a newer one about the same [fact](#facts): a proof that overtakes a status does not
  replace it. With \`ordering: subject\` a receiver gets them one after another.
- **Replay.** An event that the operator sends once more has the same \`id\` and carries the header \`intentwatch-replay: true\`.
- **Two changes between two polls** come as one event, with \`skipped: true\` where a usual step was not seen.
- **Words that are not listed here** come too: a new status \`frozen\` of an intent is \`intent.frozen\`, and a kind of
  record that the interface does not name gives its own word before the dot. Characters that do not fit a type
  become \`-\`; \`data.status\` has the word as it was. Do not refuse what you do not know.
- **History.** What a wallet did before it was subscribed makes no event, unless the subscription has \`history: emit\`.

Every event fits [events/schema.json](events/schema.json) (JSON Schema 2020-12). Members may be added to it. For tools,
[asyncapi.json](asyncapi.json) has a message with a schema and an example for each type (AsyncAPI 3.0). TypeScript types
are in [intentwatch-consumer](consumer.md).
`;

const FACTS = `Each event is about one fact of its subject; the tables below name it for each type. Of two events about the same fact the
one with the larger \`data.sequence\` is newer. Every status and every update has the whole record: of these two kinds
together the newest has the newest \`data.record\` and \`data.transfer\`. Events about other facts repeat it.

For a type that is not listed: where \`data.status\` differs from \`data.previousStatus\`, or is the word of the type, the
event is about the status. Letters compare in any case. Else the word decides as in the other tables, and a word that is
in none of them is a notice. \`quote.expired\` and \`vault.expired\` follow this rule too: they are about the status where the
upstream has that status.`;

function renderPage(schema: Schema, examples: ReadonlyMap<string, RenderedEvent>): string {
  const envelope = [
    '## The envelope',
    '',
    '| Member | Type | Meaning |',
    '|---|---|---|',
    ...rows(schema, ''),
  ];
  const facts = [
    '## Facts',
    '',
    FACTS,
    '',
    '| Fact | Meaning |',
    '|---|---|',
    ...Object.entries(FACT_KINDS).map(([kind, meaning]) => `| ${kind} | ${meaning} |`),
  ];
  const sections = [...SECTIONS].map(([kind, [title, text = '']]) => {
    const lines = EVENT_TYPES.filter((type) => type.startsWith(`${kind}.`)).map((type) => {
      const meaning = MEANINGS.get(type);
      if (meaning === undefined) throw new Error(`found no meaning of ${type}, expected one in MEANINGS`);
      return `| \`${type}\` | ${meaning.join(' | ')} | ${factKindOfType(type)} | [JSON](events/${type}.json) |`;
    });
    const head = ['| Type | Meaning | Comes when | Fact | Example |', '|---|---|---|---|---|'];
    return [`## ${title}`, '', text, '', ...head, ...lines];
  });
  const example = jsonFile(examples.get('intent.filled') ?? {}).trimEnd();
  const whole = ['## An example', '', '```json', example, '```'];
  return `${[[INTRODUCTION], envelope, facts, ...sections, whole].map((lines) => lines.join('\n').trim()).join('\n\n')}\n`;
}

/** One row per member of the schema, with the path to it. */
function rows(schema: Schema, prefix: string): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, member]) => {
    if (!isSchema(member)) return [];
    const type = schema.required?.includes(key) ? typeOf(member) : `${typeOf(member)}, or absent`;
    const { items } = member;
    return [
      `| \`${prefix}${key}\` | ${type} | ${member.description ?? ''} |`,
      ...rows(member, `${prefix}${key}.`),
      ...(isSchema(items) ? rows(items, `${prefix}${key}[].`) : []),
    ];
  });
}

function typeOf(schema: Schema): string {
  if (schema.anyOf) return schema.anyOf.filter(isSchema).map(typeOf).join(' or ');
  if (schema.format === 'date-time') return 'RFC 3339 time';
  if (schema.$ref !== undefined || schema.type === undefined) return 'any JSON';
  if (schema.type !== 'array') return [schema.type].flat().join(' or ');
  return isSchema(schema.items) && schema.items.properties ? 'list of objects' : 'list of strings';
}
