import type { ServerConfig } from '../config/config.ts';
import { isApiOn } from '../config/sections/server.ts';
import type { Health } from '../metrics/metrics.ts';
import type { EventUrl } from '../notifiers/notifier.ts';
import type { FileState } from '../operations/config-state.ts';
import { findEvent } from '../operations/events.ts';
import type { Secret } from '../secret.ts';
import type { AccessRules } from '../server/api/access.ts';
import type { ApiOptions } from '../server/api/api.ts';
import { API_BASE, type ApiContext } from '../server/api/route.ts';
import { EventLinks } from '../server/event-links.ts';
import type { LoopWatch } from '../server/loop-watch.ts';
import type { ReadinessCheck } from '../server/server.ts';
import { isClockOff, isPersistent } from '../store/redis-checks.ts';
import type { RedisMonitor } from '../store/redis-monitor.ts';
import { withTimeout } from '../with-timeout.ts';
import type { DaemonContext } from './assemble.ts';

/** Age of the last reconcile check, which runs every few seconds, from which the daemon counts as stalled. */
const RECONCILE_SILENCE_MS = 60_000;

/** Without the reason: the reader has no token. */
const LOADED: Readonly<Record<FileState['state'], string>> = {
  running: 'loaded',
  changed: 'loaded; the file has changed, and no reload was requested, see config.file_changed in the log',
  held: 'loaded; the file as it is now is held until it is confirmed, see config.large_removal in the log',
  refused: 'loaded; the file as it is now was refused, see config.reload_failed in the log',
};

/** Without the pid and the path. */
const BLOCKED: ReadinessCheck = {
  name: 'redis',
  ok: false,
  detail:
    'Redis is away: an earlier redis-server has its files open and does not end; see redis.embedded in the log',
};

/** Sources of readiness before all components run; `isBlocked`: an earlier server locks the files of the embedded Redis. */
type ReadinessSources = {
  monitor: RedisMonitor;
  fileState: () => FileState | null;
  isBlocked: () => boolean;
};

/** Readiness of a daemon for `/readyz`. Each check states in one plain sentence whether one part works. */
export function daemonReadiness(
  deps: () => DaemonContext | null,
  { monitor, fileState, isBlocked }: ReadinessSources,
): () => Promise<ReadinessCheck[]> {
  return async () => {
    const running = deps();
    const checks: ReadinessCheck[] = [
      // The running config works: a mistake in the file must not take traffic away.
      { name: 'config', ok: true, detail: LOADED[fileState()?.state ?? 'running'] },
      isBlocked() ? BLOCKED : redisReadiness(monitor),
    ];
    if (running === null) return [...checks, { name: 'workers', ok: false, detail: 'have not started yet' }];
    return [
      ...checks,
      await keyReadiness(running, monitor),
      workerReadiness(running),
      reconcileReadiness(running),
    ];
  };
}

/** Health for `/healthz`: only faults that a restart of this process would repair. */
export function daemonHealth(monitor: RedisMonitor, loop: LoopWatch): () => ReadinessCheck[] {
  return () => [
    {
      name: 'event-loop',
      ok: !loop.isStuck(),
      detail: `stood still for ${Math.round(loop.stalledMs() / 1_000)} s of the last minute`,
    },
    {
      name: 'redis-connections',
      ok: !monitor.isStuck(),
      detail: monitor.isStuck()
        ? `fresh connections have been answered for ${Math.round(monitor.stuckMs() / 1_000)} s, ours have not`
        : 'no fresh connection does better',
    },
  ];
}

/** The process's state of itself and of Redis, without a request. */
export function healthOf(readiness: () => Promise<ReadinessCheck[]>, monitor: RedisMonitor): Health {
  return {
    ready: async () => (await readiness()).every(({ ok }) => ok),
    redisReachable: () => monitor.isReachable(),
    redisPersistent: () => (monitor.persistence === null ? null : isPersistent(monitor.persistence)),
  };
}

/** Without the reason that the connection gives: the reader has no token, and a message may quote anything. */
function redisReadiness(monitor: RedisMonitor): ReadinessCheck {
  const name = 'redis';
  if (!monitor.isReachable()) {
    const silentSeconds = Math.round(monitor.silentMs() / 1_000);
    const since =
      silentSeconds === 0 ? 'the connection was lost just now' : `no answer for ${silentSeconds} s`;
    return { name, ok: false, detail: `Redis is away: ${since}` };
  }
  const skewMs = Math.abs(monitor.clockSkewMs ?? 0);
  const warnings = [
    ...(isClockOff(skewMs) ? [`our clock is ${(skewMs / 1_000).toFixed(1)} s off its clock`] : []),
    ...(monitor.persistence?.kind === 'nothing' ? ['it loses all data when it ends'] : []),
    ...(monitor.persistence?.kind === 'growing' ? ['it could not rewrite its append-only file'] : []),
  ];
  const detail = warnings.length === 0 ? 'reachable' : `reachable; warning: ${warnings.join('; ')}`;
  return { name, ok: true, detail };
}

/** Timeout for the key's state: without Redis it is unknown, which another check reports. */
const KEY_TIMEOUT_MS = 500;

/** With a key that the upstream refuses the daemon can only wait for another. */
async function keyReadiness(
  { stores: { health } }: DaemonContext,
  monitor: RedisMonitor,
): Promise<ReadinessCheck> {
  const name = 'key';
  const keyState = monitor.isReachable() ? await withTimeout(health.state('status'), KEY_TIMEOUT_MS) : null;
  if (keyState === null) return { name, ok: true, detail: 'not known without Redis' };
  const ok = keyState.state !== 'unauthorized';
  const detail = ok
    ? 'not refused'
    : 'the upstream refuses the API key, or a request without one; check upstream.apiKey';
  return { name, ok, detail };
}

/** The error code of Redis, such as MISCONF (a full disk) or OOM. The message may quote anything. */
function refusalOf(message: string): string {
  const [code] = /^[A-Z]{3,20}(?= )/.exec(message) ?? [];
  return code === undefined ? 'see dispatch.error in the log' : `Redis answers ${code}`;
}

function workerReadiness({ polling: { pollers }, delivering }: DaemonContext): ReadinessCheck {
  const workers = [
    ...pollers.flatMap(({ worker, dispatcher }) => [worker, dispatcher]),
    ...delivering.workers,
  ];
  const failure = pollers.map(({ dispatcher }) => dispatcher.failure()).find((one) => one !== null);
  if (failure) return { name: 'workers', ok: false, detail: `nothing can be polled: ${refusalOf(failure)}` };
  const idle = workers.filter((worker) => !worker.isRunning()).length;
  const ok = idle === 0 && delivering.relay.isRunning();
  const detail = ok
    ? `${workers.length} workers and the relay run`
    : `${idle} of ${workers.length} do not run`;
  return { name: 'workers', ok, detail };
}

function reconcileReadiness(deps: DaemonContext): ReadinessCheck {
  const { lastRoundMs } = deps.reconcile;
  const ok = lastRoundMs !== null && Date.now() - lastRoundMs < RECONCILE_SILENCE_MS;
  return { name: 'reconcile', ok, detail: ok ? 'ran within the last minute' : 'has not run for a minute' };
}

/** Access rules of a daemon's API. */
export function accessRulesOf(server: ServerConfig): AccessRules {
  const { tokens, console, publicUrl, trustProxy } = server;
  return { tokens, linkToken: linkTokenOf(server), console, publicUrl, trustProxy };
}

/** The API of a daemon; null where it is off. */
export function apiOptionsOf(server: ServerConfig, deps: () => ApiContext | null): ApiOptions | null {
  if (!isApiOn(server)) return null;
  return {
    ...accessRulesOf(server),
    findEvent: async (wanted) => {
      const running = deps();
      if (running === null) throw new Error('the daemon has not started');
      return findEvent(wanted, running.operations);
    },
    deps,
  };
}

function linkTokenOf({ tokens }: ServerConfig): Secret | null {
  return tokens.admin[0] ?? null;
}

/** Builds links to an event in the API; null where nobody could follow them. */
export async function eventUrlOf(server: ServerConfig): Promise<EventUrl | null> {
  const [{ publicUrl }, token] = [server, linkTokenOf(server)];
  if (publicUrl === null || token === null) return null;
  const links = await EventLinks.create(token);
  return (event, nowMs) => `${publicUrl}${API_BASE}/events/${event.id}?${links.query(event, nowMs)}`;
}
