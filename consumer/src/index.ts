export { type FastifyScope, fastifyConsumer } from './adapters/fastify.ts';
export { fetchHandler } from './adapters/fetch.ts';
export { type NodeRequest, nodeHandler } from './adapters/node.ts';
export type { Answer } from './answer.ts';
export {
  type Consumer,
  type ConsumerOptions,
  type Context,
  createConsumer,
  type InboxContext,
  type InboxOptions,
} from './consumer.ts';
export { RetryLater, WebhookError, type WebhookErrorCode } from './error.ts';
export {
  type AnyEvent,
  type EventKind,
  type EventOf,
  type EventType,
  isKnownEvent,
  type KnownEvent,
} from './event.ts';
export { EVENT_TYPES, type EventEnvelope, type FactKind, type JsonValue } from './event-types.ts';
export { type Fact, factOf } from './facts.ts';
export type { Handler, Handlers, Pattern } from './handlers.ts';
export type { HeadersInput } from './headers.ts';
export type { Claim, Inbox } from './inbox/inbox.ts';
export {
  claimEvent,
  createPostgresInbox,
  type PostgresClient,
  type PostgresInboxOptions,
  type PostgresPool,
  type PostgresResult,
} from './inbox/postgres.ts';
export { POSTGRES_TABLES, SQLITE_TABLES } from './inbox/schema.ts';
export {
  claimEventInSqlite,
  createSqliteInbox,
  type SqliteDatabase,
  type SqliteInboxOptions,
} from './inbox/sqlite.ts';
export type { Secrets } from './secrets.ts';
export { createVerifier, type VerifiedWebhook, type VerifyOptions, type WebhookRequest } from './verify.ts';
