import { formatHmacSecret, formatKeyPair } from '../../src/config/fields/signing-secret.ts';
import { signatureHeader } from '../../src/notifiers/webhook/sign.ts';
import { Secret } from '../../src/secret.ts';

const AT = 1_795_174_225;
const HMAC = formatHmacSecret(Buffer.alloc(32, 7));
const OTHER_HMAC = formatHmacSecret(Buffer.alloc(32, 9));
const PAIR = formatKeyPair(Buffer.alloc(32, 7));
const OTHER_PAIR = formatKeyPair(Buffer.alloc(32, 9));

type Headers = [name: string, value: string][];

/** A webhook before something happens to it: signed with `secrets`, seen at `now` by whoever knows `known`. */
type Webhook = { headers: Headers; body: Buffer; known: string[]; now: number };

/** What becomes of a webhook: `accepted`, or the code of the consumer package's error. */
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

type Signing = { secrets?: string[]; known?: string[]; body?: Buffer; id?: string };

/** A webhook as the daemon signs it. */
function signed({ secrets = [HMAC], known = [HMAC], id = event(1).id, ...more }: Signing = {}): Webhook {
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
  return { headers, body, known, now: AT + 1 };
}

function changed(change: (webhook: Webhook) => Partial<Webhook>, signing: Signing = {}): Webhook {
  const webhook = signed(signing);
  return { ...webhook, ...change(webhook) };
}

/** The headers with the value of one made anew; null takes it out. */
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

const ED25519: Signing = { secrets: [PAIR.secret], known: [PAIR.publicKey] };
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
  accepted('signed with the old secret, both are known', signed({ known: [OTHER_HMAC, HMAC] })),
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
  refused('signature_kind', 'signed with HMAC, ed25519 is known', signed({ known: [PAIR.publicKey] })),
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
    'UTF-8 that was taken for Latin-1',
    changed(({ body }) => ({ body: Buffer.from(body.toString('latin1'), 'utf8') })),
  ),
  refused('event_invalid', 'signed, and no JSON', signed({ body: Buffer.from('hello') })),
  refused('event_invalid', 'signed, and a list', signed({ body: Buffer.from('[]') })),
  refused('event_invalid', 'signed, and the event of another id', signed({ id: event(2).id })),
];

/** As Python's json and PHP's json_encode write what is not ASCII. */
function escaped(json: string): string {
  return json.replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** An event of a subject, told by its number: the id and the time follow from the letters and digits. */
type Delivery = [event: string, subject: string, sequence: number, second: number, verdict: Verdict];

/** What the inbox says: `new` runs the handler, `stale` too or not, as the program chooses, `handled` never. */
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
    name: 'two events of one moment are told apart by their sequence',
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
];

function handlingOf({ name, deliveries }: (typeof HANDLING)[number]) {
  return {
    name,
    deliveries: deliveries.map(([letter, subject, sequence, second, verdict]) => ({
      event: {
        id: `evt_${letter.repeat(40)}`,
        type: 'intent.updated',
        timestamp: new Date(Date.UTC(2026, 10, 20) + second * 1_000).toISOString(),
        data: { subject: { kind: 'intent', id: `intent:${subject}` }, sequence },
      },
      verdict,
    })),
  };
}

const ABOUT =
  'For whoever writes a consumer in another language. Verification: headers in order as they came, the body in base64, the secrets that the consumer knows, its clock in Unix seconds; "accepted", or why it is refused. Handling: events that come one after another to a new inbox; "new" and "stale" are taken, "handled" was taken before. Generated from scripts/generate/vectors.ts with what signs in the daemon.';

/** Webhooks with their verdicts, for consumers in any language. Paths within the repository. */
export async function generateVectorFiles(): Promise<{ path: string; content: string }[]> {
  const verification = VERIFICATION.map(({ name, verdict, webhook: { headers, body, known, now } }) => ({
    name,
    verdict,
    secrets: known,
    now,
    headers,
    body: body.toString('base64'),
  }));
  const content = JSON.stringify({ about: ABOUT, verification, handling: HANDLING.map(handlingOf) }, null, 1);
  return [{ path: 'consumer/vectors.json', content: `${content}\n` }];
}
