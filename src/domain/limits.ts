/** Limits of one source of input. `null`: the source has no limit of its own of this kind. */
export type InputLimits = {
  /** Name of the source in docs/limits.md. */
  place: string;
  bytes: number;
  /** Levels of nested lists and objects. */
  depth: number | null;
  /** Elements of all lists and members of all objects together. */
  members: number | null;
  numberCharacters: number | null;
  /** Characters of one text; absent: limited by `bytes` alone. */
  textCharacters?: number;
  /** Longest time of one request, or of one input. */
  seconds?: number;
  /** Config setting that holds the time instead of `seconds`. */
  timeSetting?: string;
  /** Effect of exceeding a limit, as docs/limits.md states it. */
  beyond: string;
};

/** Deeper nesting breaks recursive readers, such as Redis' JSON reader (1,000 levels). The interface nests five levels. */
const DEPTH = 100;

/** Longer texts of numbers cost time and mean nothing: the largest amount has 78 digits. */
const NUMBER_CHARACTERS = 1_000;

/** Longer than any certificate, signature or call of a contract that somebody sends in a body. */
const TEXT_CHARACTERS = 65_536;

/** Largest webhook body, and the consumer package's default. Standard Webhooks recommends less than 20 kB. */
export const MAX_WEBHOOK_BYTES = 19_999;

/** From first to last byte of a request. The server checks each second, so a request ends within 10 s. */
const REQUEST_SECONDS = 9;

/** Limits of every source of input. docs/limits.md is generated from them. */
export const LIMITS = {
  // The largest usual page, 50 records of 4 kB, has a fifth of this. Longer pages would block the event loop.
  upstream: {
    place: 'Page of the status endpoint, single record or error of the upstream',
    bytes: 1_048_576,
    depth: DEPTH,
    members: 20_000,
    numberCharacters: NUMBER_CHARACTERS,
    timeSetting: 'upstream.timeout',
    beyond:
      'A page of a wallet is fetched again with a smaller `limit`; see [polling](polling.md#pages-that-are-too-large). Any other answer is malformed: counted in `intentwatch_upstream_requests_total` with `outcome="malformed"`, logged, fetched again later. A longer number becomes `{}`, an unreadable member; the rest of the answer counts.',
  },
  // These endpoints have no `limit` parameter that could be reduced.
  upstreamList: {
    place: '`GET /v1/chains`, `GET /v1/tokens`, quotes of the upstream or of the open quoting service',
    bytes: 4_194_304,
    depth: DEPTH,
    members: 200_000,
    numberCharacters: NUMBER_CHARACTERS,
    timeSetting: 'upstream.timeout',
    beyond:
      'A malformed answer: counted in `intentwatch_upstream_requests_total` with `outcome="malformed"`, logged, fetched again later. A longer number becomes `{}`. A text of 256 KiB or more is parsed in a thread; of a list 10,000 chains or tokens and 1,000 quotes are read.',
  },
  rpc: {
    place: 'Answer of an RPC endpoint',
    bytes: 4_194_304,
    depth: DEPTH,
    members: 1_000_000,
    numberCharacters: NUMBER_CHARACTERS,
    timeSetting: 'chains[].rpc[].timeout',
    beyond:
      'The call failed; the check is made again later. A text of 256 KiB or more is parsed in a thread.',
  },
  receiverAnswer: {
    place: 'Answer of a receiver',
    bytes: 262_144,
    depth: null,
    members: null,
    numberCharacters: null,
    timeSetting: 'receivers[].timeout',
    beyond: 'The connection is closed. The status counts, which came before.',
  },
  receiverHeader: {
    place: 'Header of a receiver’s answer',
    bytes: 16_384,
    depth: null,
    members: null,
    numberCharacters: null,
    timeSetting: 'receivers[].timeout',
    beyond: 'The attempt failed.',
  },
  // Each mail has its own connection: a reply of 512 bytes for each of 500 recipients.
  mailReplies: {
    place: 'All replies of a mail server to one mail',
    bytes: 262_144,
    depth: null,
    members: null,
    numberCharacters: null,
    timeSetting: 'receivers[].timeout',
    beyond:
      'The connection is closed. The attempt failed. The mail of the books has 30 s in place of the setting.',
  },
  // Postgres answers an insert with a count or an error.
  postgresAnswer: {
    place: 'Answer of the Postgres of a receiver to one statement',
    bytes: 262_144,
    depth: null,
    members: null,
    numberCharacters: null,
    timeSetting: 'receivers[].timeout',
    beyond:
      'The connection is closed. The attempt failed. Of an error, 300 characters are stored and logged.',
  },
  // The largest statement reads the postings and events of some hundred transfers.
  booksAnswer: {
    place: 'Answer of the Postgres of the books to one statement',
    bytes: 67_108_864,
    depth: null,
    members: null,
    numberCharacters: null,
    seconds: 60,
    beyond:
      'The connection is closed. The transaction is rolled back and made again later. Of an error, 300 characters are logged.',
  },
  requestHead: {
    place: 'URL, query and headers of a request to the API, the console or a probe',
    bytes: 16_384,
    depth: null,
    members: null,
    numberCharacters: null,
    seconds: 5,
    beyond: '431 for the bytes, 408 for the time. The connection is closed.',
  },
  api: {
    place: 'Body of an API request, such as a tracked quote',
    bytes: 262_144,
    depth: DEPTH,
    members: 20_000,
    numberCharacters: NUMBER_CHARACTERS,
    textCharacters: TEXT_CHARACTERS,
    seconds: REQUEST_SECONDS,
    beyond: '413 for its bytes, 408 for the time, 400 for the others.',
  },
  signIn: {
    place: 'Body of a sign-in to the console',
    bytes: 16_384,
    depth: 10,
    members: 100,
    numberCharacters: NUMBER_CHARACTERS,
    textCharacters: 1_000,
    seconds: REQUEST_SECONDS,
    beyond: '413 for its bytes, 408 for the time, 400 for the others.',
  },
  // A webhook body holds the metadata of all subscriptions that lead to its receiver.
  metadata: {
    place: 'Metadata of a subscription or a tracked subject, as JSON in UTF-8',
    bytes: 4_096,
    depth: null,
    members: null,
    numberCharacters: null,
    beyond: 'The config is refused, or 400.',
  },
  // A config with 100,000 wallets has 5 MB. A few lines of YAML aliases can make billions of members.
  config: {
    place: 'Config file',
    bytes: 16_777_216,
    depth: DEPTH,
    members: 100_000,
    numberCharacters: null,
    textCharacters: 1_048_576,
    seconds: 300,
    beyond:
      'The config is refused. Members are counted where a file has aliases. The time is that of a file of more than 64 KiB that is read again.',
  },
  environment: {
    place: 'Environment variable that the config names',
    bytes: 65_536,
    depth: null,
    members: null,
    numberCharacters: null,
    beyond: 'The config is refused.',
  },
  quoteFile: {
    place: 'Quote in a file that the config or a command names, or on stdin of a command',
    bytes: 1_048_576,
    depth: DEPTH,
    members: 20_000,
    numberCharacters: NUMBER_CHARACTERS,
    textCharacters: TEXT_CHARACTERS,
    beyond:
      'The config is refused, or the command ends with 1. A file that is a pipe or a device is refused too: it might never end.',
  },
  certificateFile: {
    place: 'Certificate or key in a file that the config names',
    bytes: 1_048_576,
    depth: null,
    members: null,
    numberCharacters: null,
    beyond: 'The config is refused.',
  },
  secretFile: {
    place: 'Secret in a file that the config names',
    bytes: 65_536,
    depth: null,
    members: null,
    numberCharacters: null,
    beyond: 'The config is refused.',
  },
  // The longest page has 1,000 events.
  daemonAnswer: {
    place: 'Answer of a daemon to a command',
    bytes: 67_108_864,
    depth: null,
    members: null,
    numberCharacters: null,
    seconds: 15,
    beyond:
      'The command ends with an error. Where the daemon itself may take longer than 5 s, so may the answer.',
  },
  daemonEvent: {
    place: 'Event in a stream that a command follows',
    bytes: 4_194_304,
    depth: null,
    members: null,
    numberCharacters: null,
    seconds: 45,
    beyond: 'The command ends with an error. After the time without a byte it connects again.',
  },
  consumer: {
    place: 'Body of a webhook in the consumer package, by default (`maxBodyBytes`)',
    bytes: MAX_WEBHOOK_BYTES,
    depth: null,
    members: null,
    numberCharacters: null,
    beyond: 'Refused with 413, before it is verified or parsed.',
  },
} as const satisfies Readonly<Record<string, InputLimits>>;
