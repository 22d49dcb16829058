import { FINISHED, idle, type StageRule, trouble, underWay } from '../cadence/watch-rules.ts';
import { parseSubjectId, SUBJECT_KINDS, type SubjectId, type SubjectKind } from './subject.ts';

/** The upstream's endpoint groups, each with its own budget, plan and queue. */
export const ENDPOINT_GROUPS = ['status', 'gateway', 'quotes', 'partner-quotes', 'open-status'] as const;

export type EndpointGroup = (typeof ENDPOINT_GROUPS)[number];

/**
 * Sources of the status of transfers: `v1`; `open`, the endpoint of the open quoting service, which takes no key; `both`: v1
 * decides, and the open one adds steps forward.
 */
export const STATUS_SOURCES = ['v1', 'open', 'both'] as const;

export type StatusSource = (typeof STATUS_SOURCES)[number];

/** Status of an id that the upstream has not seen (interface, status endpoint, rule 2). */
export const UNKNOWN = 'unknown';

/** Status of a record without one: the deposit gateway requires no member of its records. */
export const UNSTATED = '';

/**
 * Description of a status or of another event. `text`: a sentence for readers, null for the usual one of a status;
 * `title` replaces the name in titles; `isTrouble`: it may need action.
 */
export type Description = { text: string | null; title: string | null; isTrouble: boolean };

/**
 * A status of a kind. `next`: usual next statuses, a hint and never a gate: they only show a step backward or a
 * skipped one. `isFailure`: not the awaited end. `isUnfunded`: a subject that expires in it was never paid.
 */
export type Status = Description & {
  next: readonly string[];
  stage: StageRule;
  isFailure: boolean;
  isUnfunded: boolean;
};

/** A kind of subject. `name`: for running text; `statuses` and `happenings` (other events): by name, in lower case. */
export type Kind = {
  name: string;
  endpointGroup: EndpointGroup;
  /** True when the upstream can be polled for one alone; the others are only seen on wallet pages. */
  isPollable: boolean;
  statusMember: 'status' | 'state';
  statuses: { readonly [word: string]: Status };
  happenings: { readonly [word: string]: Description };
};

type Wording = { text?: string; title?: string; isTrouble?: true };

/** Fills in the defaults of a description. */
export function description({ text, title, isTrouble }: Wording): Description {
  return { text: text ?? null, title: title ?? null, isTrouble: isTrouble ?? false };
}

function status(
  stage: StageRule,
  next: readonly string[],
  more: Wording & { isFailure?: true; isUnfunded?: true } = {},
): Status {
  const { isFailure, isUnfunded } = more;
  return {
    ...description(more),
    next,
    stage,
    isFailure: isFailure ?? false,
    isUnfunded: isUnfunded ?? false,
  };
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const TRANSFER: Kind['statuses'] = {
  pending: status(underWay('pending'), ['filled', 'expired', 'refundable', 'failed'], {
    text: 'The transfer has been funded and waits to be filled.',
  }),
  filled: status({ watch: 'filled', finishAfterMs: 7 * DAY, waiting: false }, ['settled'], {
    text: 'The transfer has been paid out on the destination chain.',
  }),
  settled: status(FINISHED, [], {
    text: 'The transfer is complete: it was paid out, and its solver has been paid back.',
  }),
  expired: status(trouble(30 * DAY), ['refundable'], {
    text: 'The transfer was not filled before its deadline.',
    isTrouble: true,
    isFailure: true,
  }),
  failed: status(trouble(7 * DAY), ['refundable'], {
    text: 'The transfer failed.',
    isTrouble: true,
    isFailure: true,
  }),
  refundable: status(trouble(30 * DAY), ['refunded'], {
    text: 'The transfer was not filled in time; its funds can be claimed back on the source chain. The interface of the service does not describe how: contact it, with the id of the transfer.',
    isTrouble: true,
    isFailure: true,
  }),
  refunded: status(FINISHED, [], {
    text: 'The funds of the transfer were returned on the source chain.',
    isFailure: true,
  }),
};

const QUOTE: Kind['statuses'] = {
  active: status(idle(5, 7 * DAY), ['submitted', 'expired', 'failed'], { isUnfunded: true }),
  submitted: status(idle(20, DAY, 5), []),
};

const GASLESS: Kind['statuses'] = {
  pending: status(underWay('gasless'), ['submitted', 'failed']),
  submitted: status(underWay('gasless'), ['published', 'failed']),
  published: status(idle(20, HOUR, 5), []),
  failed: status(trouble(DAY), [], { isTrouble: true, isFailure: true }),
};

const GATEWAY_JOB: Kind['statuses'] = {
  pending: status(underWay('gasless'), ['permit_sent', 'completed', 'failed']),
  permit_sent: status(underWay('gasless'), ['completed', 'failed']),
  completed: status(FINISHED, []),
  failed: status(trouble(DAY), [], { isTrouble: true, isFailure: true }),
};

const VAULT: Kind['statuses'] = {
  pending: status(idle(5, 30 * DAY), ['funding_detected', 'expired_unfunded', 'failed'], {
    isUnfunded: true,
  }),
  funding_detected: status(underWay('vault'), [
    'published',
    'failed',
    'refunded_by_user',
    'recovery_published',
  ]),
  published: status(FINISHED, []),
  expired_unfunded: status(trouble(7 * DAY), ['refunded_by_user', 'recovery_published'], {
    isTrouble: true,
    isFailure: true,
  }),
  failed: status(trouble(30 * DAY), ['refunded_by_user', 'recovery_published'], {
    isTrouble: true,
    isFailure: true,
  }),
  refunded_by_user: status(FINISHED, [], { isFailure: true }),
  recovery_published: status(FINISHED, [], { isFailure: true }),
};

/** Polled as long as the config names it, at the config's interval. */
const ROUTE: Kind['statuses'] = {
  available: status(idle(30, null), [], { text: 'Solvers quote this route.' }),
  unavailable: status(idle(30, null), [], { text: 'No solver quotes this route now.', isTrouble: true }),
};

function usual(name: string) {
  const same = 'its status is the same';
  return {
    updated: description({ text: `Details of the ${name} became known or changed; ${same}.` }),
    unknown: description({
      text: `The transfer service does not know the ${name} any more.`,
      title: 'no longer known',
      isTrouble: true,
    }),
    overdue: description({
      text: `The ${name} is taking longer than expected.`,
      title: 'still pending',
      isTrouble: true,
    }),
    expiring: description({
      text: `The ${name} expires soon, and it is not funded.`,
      title: 'expires soon',
      isTrouble: true,
    }),
    step_failed: description({
      text: `A part of the ${name} has failed, while ${same}.`,
      isTrouble: true,
    }),
    error: description({
      text: `The transfer service gives an error for the ${name}; ${same}.`,
      title: 'has an error',
      isTrouble: true,
    }),
    refund_sent: description({
      text: `A refund was sent for a part of the ${name}; ${same}.`,
      isTrouble: true,
    }),
  };
}

function happenings(name: string, words: readonly (keyof ReturnType<typeof usual>)[]): Kind['happenings'] {
  const all = usual(name);
  return Object.fromEntries(words.map((word) => [word, all[word]]));
}

const POLLED = { isPollable: true, statusMember: 'status' } as const;

const GASLESS_HAPPENINGS = happenings('gasless job', [
  'updated',
  'unknown',
  'overdue',
  'step_failed',
  'error',
]);

const PRICED_ROUTE = {
  ...POLLED,
  name: 'route',
  statuses: ROUTE,
  happenings: {
    moved: description({
      text: 'The output of this route differs from the one reported before by more than the configured share.',
    }),
  },
};

/** The kinds, with separate ones for jobs of the deposit gateway and for routes priced with the key. */
const KINDS: { readonly [kind in SubjectKind | 'gateway-job' | 'partner-route']: Kind } = {
  intent: {
    ...POLLED,
    name: 'transfer',
    endpointGroup: 'status',
    statuses: TRANSFER,
    happenings: {
      ...happenings('transfer', ['updated', 'unknown', 'overdue', 'step_failed', 'error', 'refund_sent']),
      short: description({
        text: "What was delivered is less than the minimum of the transfer's quote.",
        title: 'delivered short',
        isTrouble: true,
      }),
      verified: description({ text: 'The chain shows the payment that the transfer service stated.' }),
      disputed: description({
        text: 'The chain does not show the payment that the transfer service stated.',
        title: 'disputed',
        isTrouble: true,
      }),
      unproven: description({
        text: 'The chain does not have the transaction that the transfer service stated, or nothing there ties it to the transfer.',
        title: 'not proven',
        isTrouble: true,
      }),
    },
  },
  'deposit-address': {
    ...POLLED,
    name: 'deposit address',
    endpointGroup: 'status',
    isPollable: false,
    statuses: TRANSFER,
    // It cannot be polled alone, so it never becomes `unknown` or `overdue`.
    happenings: happenings('deposit address', ['updated', 'step_failed', 'error', 'refund_sent']),
  },
  quote: {
    ...POLLED,
    name: 'quote',
    endpointGroup: 'status',
    statuses: QUOTE,
    happenings: {
      ...happenings('quote', ['updated', 'unknown', 'expiring', 'step_failed', 'error', 'refund_sent']),
      expired: description({ text: 'The quote has expired, and it was not funded.', isTrouble: true }),
      signature_invalid: description({
        text: 'The imported quote is not as the transfer service signed it.',
        isTrouble: true,
      }),
    },
  },
  gasless: {
    ...POLLED,
    name: 'gasless job',
    endpointGroup: 'status',
    statuses: GASLESS,
    happenings: GASLESS_HAPPENINGS,
  },
  'gateway-job': {
    ...POLLED,
    name: 'gasless job',
    endpointGroup: 'gateway',
    statuses: GATEWAY_JOB,
    happenings: GASLESS_HAPPENINGS,
  },
  vault: {
    ...POLLED,
    name: 'vault',
    endpointGroup: 'gateway',
    statusMember: 'state',
    statuses: VAULT,
    happenings: {
      ...happenings('vault', ['updated', 'unknown', 'overdue', 'expiring', 'error']),
      expired: description({
        text: 'The deadline of the vault has passed, and it was not funded.',
        isTrouble: true,
      }),
    },
  },
  route: { ...PRICED_ROUTE, endpointGroup: 'quotes' },
  'partner-route': { ...PRICED_ROUTE, endpointGroup: 'partner-quotes' },
  wallet: { ...POLLED, name: 'wallet', endpointGroup: 'status', statuses: {}, happenings: {} },
  'by-tx': { ...POLLED, name: 'transaction', endpointGroup: 'status', statuses: {}, happenings: {} },
  other: {
    ...POLLED,
    name: 'subject',
    endpointGroup: 'status',
    isPollable: false,
    statuses: {},
    happenings: {},
  },
};

/** Kind of a subject. */
export function kindOf(subject: SubjectId): Kind {
  const key = parseSubjectId(subject);
  if (key?.kind === 'gasless' && key.endpoint === 'gateway') return KINDS['gateway-job'];
  if (key?.kind === 'route' && key.service === 'v1') return KINDS['partner-route'];
  return KINDS[key?.kind ?? 'other'];
}

/** A known status of a subject, in any spelling; null for an unknown name. */
export function statusOf(subject: SubjectId, word: string): Status | null {
  const { statuses } = kindOf(subject);
  const key = word.toLowerCase();
  return Object.hasOwn(statuses, key) ? (statuses[key] ?? null) : null;
}

/** Endpoint group at which a subject is polled: for a transfer that of the source of its status, with `both` that of v1. */
export function endpointGroupOf(subject: SubjectId, source: StatusSource): EndpointGroup {
  const kind = kindOf(subject);
  return kind === KINDS.intent && source === 'open' ? 'open-status' : kind.endpointGroup;
}

/** Kinds of subjects that are polled at an endpoint group. */
export function endpointGroupKinds(endpointGroup: EndpointGroup): SubjectKind[] {
  if (endpointGroup === 'open-status') return ['intent'];
  return SUBJECT_KINDS.filter((kind) =>
    variants(kind).some((one) => one.isPollable && one.endpointGroup === endpointGroup),
  );
}

/** Known statuses of a kind, in lower case. Any other status passes as well. */
export function kindStatuses(kind: SubjectKind): string[] {
  return Object.keys(eventKind(kind).statuses);
}

/** True when the upstream can be polled for this subject alone; the others are only seen on wallet pages. */
export function isPollable(subject: SubjectId): boolean {
  return kindOf(subject).isPollable;
}

/** Member of a subject's record that holds its status. */
export function statusMember(subject: SubjectId): string {
  return kindOf(subject).statusMember;
}

/** An event kind, with the statuses of all its subjects; for one of the upstream's own kinds only the name is known. */
export function eventKind(kind: string): Pick<Kind, 'name' | 'statuses' | 'happenings'> {
  const own = SUBJECT_KINDS.find((one) => one === kind);
  if (own !== undefined) {
    const statuses = Object.fromEntries(variants(own).flatMap((one) => Object.entries(one.statuses)));
    return { ...KINDS[own], statuses };
  }
  const name = kind
    .replace(/[._-]+/g, ' ')
    .trim()
    .toLowerCase();
  return { name, statuses: {}, happenings: usual(name) };
}

/** Description of the last part of an event type: a status or another event; null for an unknown one. */
export function descriptionOf(kind: string, word: string): Description | null {
  const { statuses, happenings } = eventKind(kind);
  for (const table of [happenings, statuses]) {
    if (Object.hasOwn(table, word)) return table[word] ?? null;
  }
  return null;
}

function variants(kind: SubjectKind): Kind[] {
  if (kind === 'gasless') return [KINDS.gasless, KINDS['gateway-job']];
  return kind === 'route' ? [KINDS.route, KINDS['partner-route']] : [KINDS[kind]];
}
