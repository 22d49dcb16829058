import type { PostgresReceiver } from '../../config/config.ts';
import { NameResolver } from '../../network/resolver.ts';
import { beginAttempt } from '../attempt.ts';
import { keptWithout } from '../kept.ts';
import type { AttemptOptions, AttemptResult, LoggedEvent, Notifier } from '../notifier.ts';
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

  /** Returns how many were not there. */
  async function insert(events: readonly LoggedEvent[], signal: AbortSignal): Promise<number> {
    const used = await connection(signal);
    try {
      const { rowCount } = await untilAborted(used.client.query(text, insertValues(events)), signal);
      idle.push(used);
      return rowCount ?? 0;
    } catch (error) {
      // Also after a mere refusal: a new connection sees what was changed to help, such as another search path.
      end(used);
      throw error;
    }
  }

  async function deliverTogether(
    events: readonly LoggedEvent[],
    options: AttemptOptions,
  ): Promise<AttemptResult> {
    const attempt = beginAttempt(options, timeoutMs);
    const shown = { httpStatus: null, smtpCode: null, answer: '' };
    try {
      attempt.throwIfCutOff();
      const reason = reasonOf(events.length, await insert(events, attempt.signal));
      const durationMs = attempt.elapsedMs();
      return { ...shown, outcome: 'delivered', reason, durationMs, retryAfterMs: null };
    } catch (error) {
      attempt.throwIfCutOff();
      // The server gives up after as long: where our timer is held up, its word comes first.
      const isLate = attempt.isTimedOut() || attempt.elapsedMs() >= timeoutMs;
      const reason = isLate
        ? `not inserted within ${timeoutMs} ms`
        : kept.reason(describePostgresError(error, receiver));
      const retryAfterMs = isLate ? timeoutMs : null;
      return { ...shown, outcome: 'failed', reason, durationMs: attempt.elapsedMs(), retryAfterMs };
    } finally {
      attempt.end();
    }
  }

  return {
    deliver: (event, options) => deliverTogether([{ event, entry: options.entry ?? null }], options),
    deliverTogether,
    close: async () => {
      idle = [];
      names.close();
      for (const one of open) end(one);
    },
  };
}

function reasonOf(events: number, inserted: number): string {
  if (inserted === events) return 'inserted';
  if (inserted === 0) return events === 1 ? 'was there already' : 'all were there already';
  return `inserted but for ${events - inserted} of ${events}, which were there already`;
}
