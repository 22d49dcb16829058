import type { PostgresReceiver } from '../../config/config.ts';
import type { RenderedEvent } from '../../domain/events/event.ts';
import { NameResolver } from '../../network/resolver.ts';
import { beginAttempt } from '../attempt.ts';
import { keptWithout } from '../kept.ts';
import type { AttemptOptions, AttemptResult, Notifier } from '../notifier.ts';
import {
  connectPostgres,
  type PostgresConnection,
  secretsOfPostgresUrl,
  untilAborted,
} from './connection.ts';
import { describePostgresError } from './describe-error.ts';
import { insertStatement, insertValues } from './table.ts';

/**
 * Inserts each event as a row of the user's own table, once: its id is the key, and an event that is there already counts as
 * delivered. So an attempt of which nobody knows how it ended is simply made again.
 */
export function createPostgresNotifier(receiver: PostgresReceiver): Notifier {
  const { table, timeoutMs } = receiver;
  const names = new NameResolver({ timeoutMs });
  const kept = keptWithout(secretsOfPostgresUrl(receiver.url));
  const text = insertStatement(table);
  const open = new Set<PostgresConnection>();
  let idle: PostgresConnection[] = [];

  async function connection(signal: AbortSignal): Promise<PostgresConnection> {
    for (;;) {
      const one = idle.pop();
      if (one === undefined) break;
      if (one.isUsable()) return one;
      end(one);
    }
    const made = await connectPostgres(receiver, { names, signal });
    open.add(made);
    return made;
  }

  function end(one: PostgresConnection): void {
    open.delete(one);
    one.destroy();
  }

  async function insert(values: unknown[], signal: AbortSignal): Promise<'inserted' | 'was there already'> {
    const used = await connection(signal);
    try {
      const { rowCount } = await untilAborted(used.client.query(text, values), signal);
      idle.push(used);
      return rowCount === 0 ? 'was there already' : 'inserted';
    } catch (error) {
      // Also after a mere refusal: a new connection sees what was changed to help, such as another search path.
      end(used);
      throw error;
    }
  }

  async function deliver(event: RenderedEvent, options: AttemptOptions): Promise<AttemptResult> {
    const attempt = beginAttempt(options, timeoutMs);
    const shown = { httpStatus: null, smtpCode: null, answer: '' };
    try {
      attempt.throwIfCutOff();
      const reason = await insert(insertValues(event, options.entry ?? null), attempt.signal);
      const durationMs = attempt.elapsedMs();
      return { ...shown, outcome: 'delivered', reason, durationMs, retryAfterMs: null };
    } catch (error) {
      attempt.throwIfCutOff();
      const isLate = attempt.isTimedOut();
      const reason = isLate
        ? `not inserted within ${timeoutMs} ms`
        : kept.reason(describePostgresError(error, table));
      const retryAfterMs = isLate ? timeoutMs : null;
      return { ...shown, outcome: 'failed', reason, durationMs: attempt.elapsedMs(), retryAfterMs };
    } finally {
      attempt.end();
    }
  }

  return {
    deliver,
    close: async () => {
      idle = [];
      names.close();
      for (const one of open) end(one);
    },
  };
}
