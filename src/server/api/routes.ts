import type { ApiRoute } from './route.ts';
import { readDocument } from './routes/document.ts';
import { readEvent } from './routes/event.ts';

/** Every route of the API: what the server serves, what the document describes, and what the tests go through. */
export const ROUTES: readonly ApiRoute[] = [readEvent, readDocument];
