import type { ApiRoute } from './route.ts';
import {
  addOneReceiver,
  changeOneReceiver,
  removeOneReceiver,
  replaceOneReceiver,
  rotateOneSecret,
} from './routes/added-receivers.ts';
import { acknowledgeEvents, removeConsumer } from './routes/consumers.ts';
import { readDocument } from './routes/document.ts';
import { readEvent } from './routes/event.ts';
import { listEvents, streamEvents } from './routes/log.ts';
import {
  listOfReceivers,
  RECEIVER_ACTIONS,
  readOneReceiver,
  resendToReceiver,
  retryOfReceiver,
  testOneReceiver,
} from './routes/receivers.ts';
import { readReplay, resendOfEvent } from './routes/resend.ts';
import { listWatched, readSubject, recheckSubject, resendOfSubject } from './routes/subjects.ts';
import { track, untrack } from './routes/tracking.ts';
import { listOfUndelivered } from './routes/undelivered.ts';

/** Every route of the API: what the server serves, what the document describes, and what the tests go through. */
export const ROUTES: readonly ApiRoute[] = [
  listWatched,
  readSubject,
  track,
  untrack,
  recheckSubject,
  listEvents,
  streamEvents,
  readEvent,
  acknowledgeEvents,
  removeConsumer,
  listOfUndelivered,
  resendOfEvent,
  resendOfSubject,
  resendToReceiver,
  retryOfReceiver,
  readReplay,
  listOfReceivers,
  addOneReceiver,
  readOneReceiver,
  replaceOneReceiver,
  changeOneReceiver,
  removeOneReceiver,
  rotateOneSecret,
  ...RECEIVER_ACTIONS,
  testOneReceiver,
  readDocument,
];
