import { readDocument } from './openapi.ts';
import type { ApiRoute } from './route.ts';
import {
  addOneReceiver,
  changeOneReceiver,
  removeOneReceiver,
  replaceOneReceiver,
  rotateOneSecret,
} from './routes/added-receivers.ts';
import { readBooks } from './routes/books.ts';
import { readConfig, reload } from './routes/config.ts';
import { acknowledgeEvents, removeConsumer } from './routes/consumers.ts';
import { listCorridors, readAllLearned, removeAllLearned } from './routes/learned.ts';
import { listEvents, readEvent, streamEvents } from './routes/log.ts';
import {
  listOfReceivers,
  RECEIVER_ACTIONS,
  readOneReceiver,
  resendToReceiver,
  retryOfReceiver,
  testOneReceiver,
} from './routes/receivers.ts';
import { readReplay, resendOfEvent, resendOfSubject } from './routes/resend.ts';
import { listDeliveriesOfSubject, listWatched, readSubject, recheckSubject } from './routes/subjects.ts';
import { listOfDropped, listOfSuspended, removeOfSuspended } from './routes/suspended.ts';
import { track, untrack } from './routes/tracking.ts';
import {
  listOfQuarantine,
  listOfUndelivered,
  listOfUnmatched,
  replayOfQuarantine,
} from './routes/undelivered.ts';

export const ROUTES: readonly ApiRoute[] = [
  listWatched,
  readSubject,
  listDeliveriesOfSubject,
  track,
  untrack,
  recheckSubject,
  listCorridors,
  readAllLearned,
  removeAllLearned,
  listEvents,
  streamEvents,
  readEvent,
  acknowledgeEvents,
  removeConsumer,
  listOfQuarantine,
  replayOfQuarantine,
  listOfUndelivered,
  listOfUnmatched,
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
  ...Object.values(RECEIVER_ACTIONS),
  testOneReceiver,
  readBooks,
  readConfig,
  reload,
  listOfSuspended,
  listOfDropped,
  removeOfSuspended,
  readDocument,
];
