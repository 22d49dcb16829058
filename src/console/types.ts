/** What the API answers with, by the names of its schemas: for the types of the console's files. */
import type { z } from 'zod';
import type { Corridor } from '../domain/cadence/corridors.ts';
import type { RenderedEvent } from '../domain/events/event.ts';
import type { ConfigState } from '../operations/config-state.ts';
import type { TESTED } from '../operations/deliveries.ts';
import type { ReceiverView } from '../operations/receivers.ts';
import type { SubjectDelivery } from '../operations/subject-deliveries.ts';
import type { Subject } from '../operations/subjects.ts';
import type { Dropped, Suspended } from '../operations/suspended.ts';
import type { SubjectState } from '../operations/timeline.ts';
import type { Undelivered, Unmatched } from '../operations/undelivered.ts';
import type { PROBLEM, RESENT_SUBJECT, RETRIED } from '../server/api/shapes.ts';

export type {
  ConfigState,
  Corridor,
  Dropped,
  ReceiverView,
  RenderedEvent,
  Subject,
  SubjectDelivery,
  Suspended,
  Undelivered,
  Unmatched,
};
export type Problem = z.infer<typeof PROBLEM>;
/** A subject with a page of its timeline. */
export type SubjectDetails = SubjectState & { next: string | null };
export type Moment = SubjectDetails['timeline'][number];

/** One page of a list, which stands under a name of its own. */
export type Page<T> = { next: string | null } & { [list in ListName]: T[] };

/** The names of the lists that come in pages. */
export type ListName = 'subjects' | 'undelivered' | 'unmatched' | 'suspended' | 'dropped';

/** What each thing that a receiver can be instructed to do is answered with. */
export type ReceiverAnswers = {
  pause: ReceiverView;
  resume: ReceiverView;
  enable: ReceiverView;
  test: z.infer<typeof TESTED>;
  retry: z.infer<typeof RETRIED>;
  resend: { replay: string };
};

/** A page of the deliveries of a subject's events. */
export type DeliveryPage = { deliveries: SubjectDelivery[]; next: string | null };

/** What each thing that can be done with a subject is answered with. */
export type SubjectAnswers = { recheck: { subject: string }; resend: z.infer<typeof RESENT_SUBJECT> };

/** True when what the page shows is current. `full`: as many pages as may be follow the events with this token; this one is read anew from time to time. */
export type LiveState = 'connecting' | 'live' | 'stale' | 'full';

/** Who looks at the page: whether a token is needed, and what the one that was given allows. */
export type Session = { signIn: boolean; scope: 'read' | 'consume' | 'admin' | null; version: string };

/** What each view gets: what may be done, a number that grows when something has changed, and where to say what was done. */
export type ViewProps = {
  canAct: boolean;
  tick: number;
  say: (text: string, isError?: boolean) => void;
  refresh: () => void;
};
