import { Queue } from 'bullmq';
import { parseSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import type { Migration, MigrationContext } from '../store/migrate.ts';

/** How many subjects are handed over, or jobs removed, in one batch. */
const BATCH = 500;

/** The queues of version 0, one per surface. */
const SURFACES_0 = ['status', 'gateway', 'quotes'] as const;

/**
 * From 0 to 1: version 0 kept every polled subject in one sorted set, with a long-lived job each. `track` takes subjects
 * onto the plan that has replaced it; those that are there already stay as they are.
 */
export function scheduleMigration(track: (subjects: readonly SubjectId[]) => Promise<void>): Migration {
  return {
    to: 1,
    run: async (context) => {
      await handOver(context, track);
      await removeJobs(context);
      await context.redis.unlink(...oldKeys(context));
    },
  };
}

/** A batch leaves the old schedule only when it is on the new one. */
async function handOver(
  { redis, keys, proceed }: MigrationContext,
  track: (subjects: readonly SubjectId[]) => Promise<void>,
): Promise<void> {
  const due = `${keys.root}:due`;
  for (;;) {
    const members = await redis.zrange(due, '0', String(BATCH - 1));
    if (members.length === 0) return;
    await track(members.filter(isSubjectId));
    await redis.zrem(due, ...members);
    await proceed();
  }
}

async function removeJobs({ redis, keys, proceed }: MigrationContext): Promise<void> {
  for (const name of SURFACES_0) {
    const queue = new Queue(name, { connection: redis, prefix: keys.queues, skipMetasUpdate: true });
    queue.on('error', () => undefined);
    await queue.obliterate({ force: true, count: BATCH });
    await queue.close();
    await proceed();
  }
}

/** Keys that only version 0 has. What was planned and priced is planned and priced anew. */
function oldKeys({ keys }: MigrationContext): string[] {
  const single = ['due', 'starts', 'nudged', 'seen', 'own'];
  const bySurface = SURFACES_0.flatMap((surface) =>
    ['demand', 'demand-total', 'price', 'asked', 'turn'].map((name) => `${name}:${surface}`),
  );
  return [...single, ...bySurface].map((name) => `${keys.root}:${name}`);
}

function isSubjectId(text: string): text is SubjectId {
  return parseSubjectId(text) !== null;
}
