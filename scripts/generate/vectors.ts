import { formatHmacSecret, formatKeyPair } from '../../src/config/fields/signing-secret.ts';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';
import { signatureHeader } from '../../src/notifiers/webhook/webhook.ts';
import { Secret } from '../../src/secret.ts';
import { exampleEvents } from './event-examples.ts';
import { factKindOfType } from './fact-kinds.ts';

const AT = 1_795_174_225;
const HMAC = formatHmacSecret(Buffer.alloc(32, 7));
const OTHER_HMAC = formatHmacSecret(Buffer.alloc(32, 9));
const PAIR = formatKeyPair(Buffer.alloc(32, 7));
const OTHER_PAIR = formatKeyPair(Buffer.alloc(32, 9));

type Headers = [name: string, value: string][];

/** A webhook before an alteration: signed with `secrets`, received at `now` by a consumer with the secrets `trusted`. */
type Webhook = { headers: Headers; body: Buffer; trusted: string[]; now: number };

/** Verdict on a webhook: `accepted`, or the code of the consumer package's error. */
type Vector = { name: string; verdict: string; webhook: Webhook };

function event(number: number): { [key: string]: unknown } & { id: string } {
  return {
    id: `evt_${String(number).padStart(40, '0')}`,
    type: 'intent.filled',
    timestamp: '2026-11-20T11:30:24.900Z',
    data: {
      subject: { kind: 'intent', id: `intent:0x${'ab'.repeat(32)}` },
      sequence: 2,
      status: 'filled',
      previousStatus: 'pending',
      changes: ['status'],
      record: { type: 'intent', status: 'filled', note: 'naïve ✓ "quoted" 😀' },
      wallets: [],
      subscriptions: ['treasury'],
      metadata: { order: '1042' },
      upstreamUpdatedAt: 1_795_174_224,
      detectionDelaySeconds: 0.9,
    },
  };
}

type Signing = { secrets?: string[]; trusted?: string[]; body?: Buffer; id?: string };

/** Signs a webhook as the daemon does. */
function signed({ secrets = [HMAC], trusted = [HMAC], id = event(1).id, ...more }: Signing = {}): Webhook {
  const body = more.body ?? Buffer.from(JSON.stringify(event(1)));
  const content = { id, timestampSeconds: AT, body };
  const signature = signatureHeader(
    content,
    secrets.map((secret) => new Secret(secret)),
  );
  const headers: Headers = [
    ['content-type', 'application/json'],
    ['webhook-id', id],
    ['webhook-timestamp', String(AT)],
    ['webhook-signature', signature],
  ];
  return { headers, body, trusted, now: AT + 1 };
}

function changed(change: (webhook: Webhook) => Partial<Webhook>, signing: Signing = {}): Webhook {
  const webhook = signed(signing);
  return { ...webhook, ...change(webhook) };
}

/** Replaces the value of one header; null removes it. */
function header(
  name: string,
  make: (value: string) => string | null,
): (webhook: Webhook) => Partial<Webhook> {
  return ({ headers }) => ({
    headers: headers.flatMap(([key, value]): Headers => {
      const made = key === name ? make(value) : value;
      return made === null ? [] : [[key, made]];
    }),
  });
}

const ED25519: Signing = { secrets: [PAIR.secret], trusted: [PAIR.publicKey] };
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

const accepted = (name: string, webhook: Webhook): Vector => ({ name, verdict: 'accepted', webhook });
const refused = (code: string, name: string, webhook: Webhook): Vector => ({ name, verdict: code, webhook });

const VERIFICATION: readonly Vector[] = [
  accepted('signed with HMAC', signed()),
  accepted('signed with ed25519', signed(ED25519)),
  accepted(
    'signed with the new secret and the old, the old is known',
    signed({ secrets: [OTHER_HMAC, HMAC] }),
  ),
  accepted('signed with the old secret, both are known', signed({ trusted: [OTHER_HMAC, HMAC] })),
  accepted('signed with both kinds, HMAC is known', signed({ secrets: [PAIR.secret, HMAC] })),
  accepted('signed with both kinds, ed25519 is known', signed({ ...ED25519, secrets: [HMAC, PAIR.secret] })),
  accepted(
    'a header in another case',
    changed(({ headers }) => ({
      headers: headers.map(([key, value]) => [key.replace('webhook', 'Webhook'), value]),
    })),
  ),
  accepted(
    'signatures in two headers',
    changed(
      ({ headers }) => ({
        headers: headers.flatMap(
          ([key, value]): Headers =>
            key === 'webhook-signature' ? value.split(' ').map((one) => [key, one]) : [[key, value]],
        ),
      }),
      { secrets: [OTHER_HMAC, HMAC] },
    ),
  ),
  accepted(
    'members and a type that are not known',
    signed({
      body: Buffer.from(JSON.stringify({ ...event(1), type: 'intent.frozen', later: { than: 'this' } })),
    }),
  ),
  accepted('five minutes old', { ...signed(), now: AT + 300 }),
  accepted('five minutes in the future', { ...signed(), now: AT - 300 }),
  accepted(
    'a signature of a later version beside',
    changed(header('webhook-signature', (value) => `v2,AAAA ${value}`)),
  ),

  refused('timestamp_too_old', 'five minutes and a second old', { ...signed(), now: AT + 301 }),
  refused('timestamp_too_new', 'five minutes and a second in the future', { ...signed(), now: AT - 301 }),
  refused('timestamp_invalid', 'a timestamp in words', changed(header('webhook-timestamp', () => 'now'))),
  refused(
    'timestamp_invalid',
    'a timestamp with a sign',
    changed(header('webhook-timestamp', (value) => `+${value}`)),
  ),
  refused(
    'timestamp_invalid',
    'a timestamp with a fraction',
    changed(header('webhook-timestamp', (value) => `${value}.0`)),
  ),
  refused(
    'timestamp_invalid',
    'a timestamp with 400 digits',
    changed(header('webhook-timestamp', () => '1'.repeat(400))),
  ),
  refused(
    'signature_mismatch',
    'another timestamp than was signed',
    changed(header('webhook-timestamp', (value) => String(Number(value) + 1))),
  ),
  refused(
    'signature_mismatch',
    'another id than was signed',
    changed(header('webhook-id', (value) => `${value.slice(0, -1)}0`)),
  ),
  refused('header_missing', 'no id', changed(header('webhook-id', () => null))),
  refused('header_missing', 'an empty id', changed(header('webhook-id', () => ''))),
  refused('header_missing', 'no timestamp', changed(header('webhook-timestamp', () => null))),
  refused('header_missing', 'no signature', changed(header('webhook-signature', () => null))),
  refused(
    'header_repeated',
    'the id in two headers',
    changed(({ headers }) => ({ headers: [...headers, ['webhook-id', event(2).id]] })),
  ),
  refused(
    'header_repeated',
    'the timestamp in two headers',
    changed(({ headers }) => ({ headers: [...headers, ['webhook-timestamp', String(AT + 1)]] })),
  ),
  refused('signature_mismatch', 'signed with another secret', signed({ secrets: [OTHER_HMAC] })),
  refused(
    'signature_mismatch',
    'signed with another key pair',
    signed({ ...ED25519, secrets: [OTHER_PAIR.secret] }),
  ),
  refused('signature_kind', 'signed with ed25519, HMAC is known', signed({ secrets: [PAIR.secret] })),
  refused('signature_kind', 'signed with HMAC, ed25519 is known', signed({ trusted: [PAIR.publicKey] })),
  refused(
    'signature_kind',
    'the signature of one version under another',
    changed(header('webhook-signature', (value) => value.replace('v1,', 'v1a,'))),
  ),
  refused('signature_mismatch', 'an empty signature', changed(header('webhook-signature', () => 'v1,'))),
  refused(
    'signature_mismatch',
    'half a signature',
    changed(header('webhook-signature', (value) => value.slice(0, 20))),
  ),
  refused(
    'signature_mismatch',
    'a signature with something behind it',
    changed(header('webhook-signature', (value) => `${value}!`)),
  ),
  refused(
    'signature_mismatch',
    'the key as its own signature',
    changed(header('webhook-signature', () => HMAC.replace('whsec_', 'v1,'))),
  ),
  refused(
    'signature_mismatch',
    'another amount in the body',
    changed(({ body }) => ({ body: Buffer.from(body.toString().replace('1042', '9042')) })),
  ),
  refused(
    'signature_mismatch',
    'a body that is cut off',
    changed(({ body }) => ({ body: body.subarray(0, -1) })),
  ),
  refused(
    'body_changed',
    'no body',
    changed(() => ({ body: Buffer.alloc(0) })),
  ),
  refused(
    'body_changed',
    'JSON that was parsed and indented',
    changed(({ body }) => ({ body: Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 2)) })),
  ),
  refused(
    'body_changed',
    'JSON that was parsed and written with escapes',
    changed(({ body }) => ({ body: Buffer.from(escaped(body.toString())) })),
  ),
  refused(
    'body_changed',
    'a line break at the end',
    changed(({ body }) => ({ body: Buffer.concat([body, Buffer.from('\n')]) })),
  ),
  refused(
    'body_changed',
    'a byte order mark at the start',
    changed(({ body }) => ({ body: Buffer.concat([BOM, body]) })),
  ),
  refused(
    'body_changed',
    'UTF-8 that was mistaken for Latin-1',
    changed(({ body }) => ({ body: Buffer.from(body.toString('latin1'), 'utf8') })),
  ),
  refused('event_invalid', 'signed, and no JSON', signed({ body: Buffer.from('hello') })),
  refused('event_invalid', 'signed, and a list', signed({ body: Buffer.from('[]') })),
  refused('event_invalid', 'signed, and the event of another id', signed({ id: event(2).id })),
];

/** Escapes non-ASCII characters like Python's json and PHP's json_encode. */
function escaped(json: string): string {
  return json.replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** An event of a subject: the id and the time follow from the letter and the second. */
type Delivery = [
  event: string,
  subject: string,
  sequence: number,
  second: number,
  verdict: Verdict,
  more?: Differing,
];

/** Differences of an event from `intent.updated` of a filled transfer. */
type Differing = {
  type?: string;
  status?: string;
  previousStatus?: string | null;
  epoch?: number;
  payment?: string;
  destinationTx?: string;
  output?: string;
};

/** Verdict of the inbox: `new` runs the handler, `stale` too or not, as the program chooses, `handled` never. */
type Verdict = 'new' | 'stale' | 'handled';

const HANDLING: readonly { name: string; deliveries: readonly Delivery[] }[] = [
  {
    name: 'each event once',
    deliveries: [
      ['a', 's', 1, 1, 'new'],
      ['a', 's', 1, 1, 'handled'],
      ['b', 's', 2, 2, 'new'],
      ['a', 's', 1, 1, 'handled'],
      ['b', 's', 2, 2, 'handled'],
    ],
  },
  {
    name: 'an event that was overtaken is stale, once',
    deliveries: [
      ['b', 's', 2, 2, 'new'],
      ['a', 's', 1, 1, 'stale'],
      ['a', 's', 1, 1, 'handled'],
      ['c', 's', 3, 3, 'new'],
    ],
  },
  {
    name: 'subjects are apart',
    deliveries: [
      ['b', 's', 9, 9, 'new'],
      ['c', 't', 1, 1, 'new'],
      ['d', 't', 2, 2, 'new'],
    ],
  },
  {
    name: 'a gap in the sequence is no matter',
    deliveries: [
      ['a', 's', 1, 1, 'new'],
      ['d', 's', 7, 7, 'new'],
      ['e', 's', 8, 8, 'new'],
    ],
  },
  {
    name: 'two events of one time are distinguished by their sequence',
    deliveries: [
      ['b', 's', 2, 5, 'new'],
      ['a', 's', 1, 5, 'stale'],
    ],
  },
  {
    name: 'a stale event does not move the subject back',
    deliveries: [
      ['c', 's', 3, 3, 'new'],
      ['a', 's', 1, 1, 'stale'],
      ['b', 's', 2, 2, 'stale'],
    ],
  },
  {
    name: 'after the daemon lost its Redis, sequences begin anew',
    deliveries: [
      ['e', 's', 8, 8, 'new'],
      ['f', 's', 1, 20, 'new'],
      ['g', 's', 2, 21, 'new'],
    ],
  },
  {
    name: 'an update, a proof and a reminder that overtake a status do not make it stale',
    deliveries: [
      ['e', 's', 5, 5, 'new'],
      ['d', 's', 4, 4, 'new', { type: 'intent.verified', payment: 'destination' }],
      ['b', 's', 2, 2, 'new', { type: 'intent.overdue', status: 'pending', previousStatus: 'pending' }],
      ['c', 's', 3, 3, 'new', { type: 'intent.filled', previousStatus: 'pending' }],
      ['a', 's', 1, 1, 'stale', { type: 'intent.pending', status: 'pending', previousStatus: null }],
    ],
  },
  {
    name: 'a return to an earlier status is a newer status',
    deliveries: [
      ['c', 's', 3, 3, 'new', { type: 'intent.pending', status: 'pending', previousStatus: 'filled' }],
      ['b', 's', 2, 2, 'stale', { type: 'intent.filled', previousStatus: 'pending' }],
    ],
  },
  {
    name: 'payments are apart, and a newer verdict makes the earlier one of a payment stale',
    deliveries: [
      ['d', 's', 4, 4, 'new', { type: 'intent.disputed', payment: 'destination' }],
      ['c', 's', 3, 3, 'new', { type: 'intent.verified', payment: 'source' }],
      ['b', 's', 2, 2, 'stale', { type: 'intent.verified', payment: 'destination' }],
    ],
  },
  {
    name: 'an update with a word of its own is overtaken by none with another word',
    deliveries: [
      ['d', 's', 4, 4, 'new'],
      ['c', 's', 3, 3, 'new', { type: 'intent.refund_sent' }],
      ['b', 's', 2, 2, 'new', { type: 'intent.short' }],
      ['a', 's', 1, 1, 'stale'],
    ],
  },
  {
    name: 'the epoch counts before the sequence',
    deliveries: [
      ['e', 's', 8, 8, 'new', { epoch: 1 }],
      ['f', 's', 1, 20, 'new', { epoch: 2 }],
      ['h', 's', 9, 9, 'stale', { epoch: 1 }],
      ['i', 's', 10, 30, 'stale'],
      ['g', 's', 2, 21, 'new', { epoch: 2 }],
    ],
  },
  {
    name: 'within an epoch the sequence counts, whatever the clock did',
    deliveries: [
      ['b', 's', 2, 5, 'new', { epoch: 1 }],
      ['a', 's', 1, 20, 'stale', { epoch: 1 }],
    ],
  },
];

function handlingOf({ name, deliveries }: (typeof HANDLING)[number]) {
  return {
    name,
    deliveries: deliveries.map(([letter, subject, sequence, second, verdict, more]) => ({
      event: eventOf({ letter, subject, sequence, second }, more),
      verdict,
    })),
  };
}

type Place = { letter: string; subject: string; sequence: number; second: number };

function eventOf({ letter, subject, sequence, second }: Place, more: Differing = {}) {
  const { type = 'intent.updated', status = 'filled', previousStatus = status, epoch } = more;
  const { payment, destinationTx, output } = more;
  const [kind = ''] = type.split('.');
  return {
    id: `evt_${letter.repeat(40)}`,
    type,
    timestamp: new Date(Date.UTC(2026, 10, 20) + second * 1_000).toISOString(),
    data: {
      subject: { kind, id: `${kind}:${subject}` },
      sequence,
      ...(epoch === undefined ? {} : { epoch }),
      status,
      previousStatus,
      record: output === undefined ? {} : { output },
      ...(payment === undefined ? {} : { proof: { payment, txHash: `0x${letter}` } }),
      ...(destinationTx === undefined ? {} : { transfer: { destination: { txHash: destinationTx } } }),
    },
  };
}

/** Types outside the catalogue, and types whose name alone does not decide the fact. */
const ODD_FACTS: readonly [name: string, fact: string, differing: Differing & { type: string }][] = [
  ['a status that is not known', 'status', { type: 'intent.frozen', status: 'Frozen', previousStatus: null }],
  ['a kind of record that is not known', 'update:updated', { type: 'swap.updated' }],
  ['a word that is not known, under the same status', 'notice:acknowledged', { type: 'intent.acknowledged' }],
  ['a status in another case', 'update:updated', { type: 'vault.updated', status: 'X', previousStatus: 'x' }],
  [
    'a status named like a verdict',
    'status',
    { type: 'intent.verified', status: 'verified', previousStatus: 'filled' },
  ],
  [
    'a quote that expired by its status',
    'status',
    { type: 'quote.expired', status: 'expired', previousStatus: 'active' },
  ],
  ['a quote that expired by the clock', 'reminder', { type: 'quote.expired', status: 'active' }],
  ['a verdict on another payment', 'proof:refund', { type: 'intent.disputed', payment: 'refund' }],
  ['a word that objects have in some languages', 'notice:constructor', { type: 'intent.constructor' }],
];

function factsOf() {
  const examples = exampleEvents();
  const ofCatalogue = EVENT_TYPES.map((type) => {
    const example = examples.get(type);
    if (example === undefined) throw new Error(`found no example of ${type}, expected one`);
    const { status, previousStatus, proof } = example.data;
    const kind = factKindOfType(type);
    const key = { proof: proof?.payment, update: wordOf(type), notice: wordOf(type) }[kind as string];
    const data = {
      status,
      previousStatus,
      ...(proof === undefined ? {} : { proof: { payment: proof.payment } }),
    };
    return { name: type, event: { type, data }, fact: key === undefined ? kind : `${kind}:${key}` };
  });
  const odd = ODD_FACTS.map(([name, fact, differing]) => {
    const { type, data } = eventOf({ letter: 'a', subject: 's', sequence: 1, second: 1 }, differing);
    const { status, previousStatus, proof } = data;
    return {
      name,
      event: { type, data: { status, previousStatus, ...(proof === undefined ? {} : { proof }) } },
      fact,
    };
  });
  return [...ofCatalogue, ...odd];
}

function wordOf(type: string): string {
  return type.slice(type.indexOf('.') + 1);
}

type Row = (string | null)[];

/** Events of a subject in the order of their creation, and the tables of the examples after any other order. */
type Life = { name: string; events: readonly Differing[]; tables: { [table: string]: Row[] } };

const PENDING: Differing = { type: 'intent.pending', status: 'pending', previousStatus: null };
const OVERDUE: Differing = { type: 'intent.overdue', status: 'pending' };
const FILLED: Differing = { type: 'intent.filled', previousStatus: 'pending' };
const UPDATED: Differing = { destinationTx: '0xd1' };
const VERIFIED: Differing = { type: 'intent.verified', payment: 'destination', destinationTx: '0xd1' };

const LIVES: readonly Life[] = [
  {
    name: 'a transfer that is filled, verified, and goes back to pending',
    events: [
      PENDING,
      OVERDUE,
      FILLED,
      UPDATED,
      VERIFIED,
      { type: 'intent.pending', status: 'pending', previousStatus: 'filled' },
      { type: 'intent.disputed', payment: 'destination', status: 'pending' },
    ],
    tables: {
      subjects: [['intent:s', 'pending', null]],
      proofs: [['intent:s', 'destination', 'disputed', '0xg']],
      reminders: [['intent:s', 'overdue', 'pending']],
    },
  },
  {
    name: 'a transfer that is filled, updated and verified',
    events: [PENDING, OVERDUE, FILLED, UPDATED, VERIFIED],
    tables: {
      subjects: [['intent:s', 'filled', '0xd1']],
      proofs: [['intent:s', 'destination', 'verified', '0xe']],
      reminders: [['intent:s', 'overdue', 'pending']],
    },
  },
  {
    name: 'a transfer that is paid out short and refunded in part',
    events: [
      FILLED,
      UPDATED,
      { type: 'intent.short' },
      { type: 'intent.refund_sent', destinationTx: '0xd2' },
      { ...VERIFIED, payment: 'source' },
      VERIFIED,
    ],
    tables: {
      subjects: [['intent:s', 'filled', '0xd2']],
      proofs: [
        ['intent:s', 'destination', 'verified', '0xf'],
        ['intent:s', 'source', 'verified', '0xe'],
      ],
      notices: [[`evt_${'c'.repeat(40)}`, 'intent:s', 'intent.short']],
    },
  },
  {
    name: 'a quote that expires by the clock and is funded nevertheless',
    events: [
      { type: 'quote.active', status: 'active', previousStatus: null },
      { type: 'quote.expiring', status: 'active' },
      { type: 'quote.expired', status: 'active' },
      { type: 'quote.submitted', status: 'submitted', previousStatus: 'active' },
    ],
    tables: {
      subjects: [['quote:s', 'submitted', null]],
      reminders: [['quote:s', 'expired', 'active']],
    },
  },
  {
    name: 'a route',
    events: [
      { type: 'route.available', status: 'available', previousStatus: null, output: '1' },
      { type: 'route.moved', status: 'available', output: '2' },
      { type: 'route.unavailable', status: 'unavailable', previousStatus: 'available' },
      { type: 'route.available', status: 'available', previousStatus: 'unavailable', output: '3' },
    ],
    tables: { routes: [['route:s', 'available', '3']] },
  },
  {
    name: 'a transfer whose sequence begins anew after a restore',
    events: [
      { ...PENDING, epoch: 1 },
      { type: 'intent.updated', status: 'pending', epoch: 1, destinationTx: '0xd0' },
      { type: 'intent.error', status: 'pending', epoch: 1 },
      { ...PENDING, epoch: 2 },
      { ...FILLED, epoch: 2, destinationTx: '0xd1' },
    ],
    tables: { subjects: [['intent:s', 'filled', '0xd1']] },
  },
];

/** The sequence counts the events of an epoch. */
function lifeOf({ name, events, tables }: Life) {
  const made = events.map((differing, index) => {
    const sequence = events.slice(0, index + 1).filter(({ epoch }) => epoch === differing.epoch).length;
    const letter = String.fromCharCode('a'.charCodeAt(0) + index);
    return eventOf({ letter, subject: 's', sequence, second: index + 1 }, differing);
  });
  const empty = { subjects: [], proofs: [], reminders: [], routes: [], notices: [] };
  return { name, events: made, tables: { ...empty, ...tables } };
}

const ABOUT =
  'For whoever writes a consumer in another language. Verification: headers in order as they came, the body in base64, the secrets that the consumer knows, its clock in Unix seconds; "accepted", or why it is refused. Handling: events that come one after another to a new inbox; "new" and "stale" are accepted, "handled" was accepted before. Facts: what an event is about. Lives: events of a subject in the order in which they were made; in whatever order they come, the tables of examples/handle-once are these in the end. Generated from scripts/generate/vectors.ts with what signs in the daemon.';

/** Webhooks with their verdicts, for consumers in any language. Paths within the repository. */
export async function generateVectorFiles(): Promise<{ path: string; content: string }[]> {
  const verification = VERIFICATION.map(({ name, verdict, webhook: { headers, body, trusted, now } }) => ({
    name,
    verdict,
    secrets: trusted,
    now,
    headers,
    body: body.toString('base64'),
  }));
  const vectors = {
    about: ABOUT,
    verification,
    handling: HANDLING.map(handlingOf),
    facts: factsOf(),
    lives: LIVES.map(lifeOf),
  };
  const content = JSON.stringify(vectors, null, 1);
  return [{ path: 'consumer/vectors.json', content: `${content}\n` }];
}
