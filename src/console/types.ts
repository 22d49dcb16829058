/** Types of the API's answers, by the names of its schemas, for the files of the console. */
import type { z } from 'zod';
import type { TESTED } from '../operations/deliveries.ts';
import type { ReceiverView } from '../operations/receivers.ts';
import type { SubjectDelivery } from '../operations/subject-deliveries.ts';
import type { PROBLEM, RESENT_SUBJECT, RETRIED } from '../server/api/shapes.ts';

export type { Corridor } from '../domain/cadence/corridors.ts';
export type { RenderedEvent } from '../domain/events/event.ts';
export type { ConfigState } from '../operations/config-state.ts';
export type { Subject } from '../operations/subjects.ts';
export type { Dropped, Suspended } from '../operations/suspended.ts';
export type { TimelineEntry } from '../operations/timeline.ts';
export type { Undelivered, Unmatched } from '../operations/undelivered.ts';
export type { SubjectDetails } from '../server/api/shapes.ts';
export type { ReceiverView, SubjectDelivery };

export type ApiProblem = z.infer<typeof PROBLEM>;

/** One page of a list; the list has a name of its own. */
export type ListPage<T> = { next: string | null } & { [list in ListName]: T[] };

/** Names of the lists with pages. */
export type ListName = 'subjects' | 'undelivered' | 'unmatched' | 'suspended' | 'dropped';

/** Answers of the actions on a receiver. */
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

/** Answers of the actions on a subject. */
export type SubjectAnswers = { recheck: { subject: string }; resend: z.infer<typeof RESENT_SUBJECT> };

/** `live`: the page is current. `full`: this token has its limit of pages that follow; this one is read at intervals. */
export type LiveState = 'connecting' | 'live' | 'stale' | 'full';

/** The user of the page: `signIn` is true where a token is needed, `scope` is that of the given one. */
export type ConsoleUser = { signIn: boolean; scope: 'read' | 'consume' | 'admin' | null; version: string };

/** Props of each view: its rights, a number that grows with each change, and a function that reports what was done. */
export type ViewProps = {
  canAct: boolean;
  tick: number;
  notify: (text: string, isError?: boolean) => void;
  refresh: () => void;
};
