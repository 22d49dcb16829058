import { repeatTogether } from '../duty.ts';

const BEAT_MS = 1_000;
const WINDOW_MS = 60_000;
const LIMIT_MS = 30_000;

/**
 * Measures the stalls of the event loop within the last minute. An answer of the server already proves life. So the delay of
 * a timer counts, and of that only the time in which the process computed: a process that was suspended, or got no processor,
 * is not stuck.
 */
export class LoopWatch {
  readonly #beatMs: number;
  readonly #windowMs: number;
  readonly #limitMs: number;
  readonly #stalls: { atMs: number; forMs: number }[] = [];
  #stop: () => void = () => undefined;
  #beatAtMs = 0;
  #cpuMs = 0;

  /** Only tests change the spans. */
  constructor({ beatMs = BEAT_MS, windowMs = WINDOW_MS, limitMs = LIMIT_MS } = {}) {
    this.#beatMs = beatMs;
    this.#windowMs = windowMs;
    this.#limitMs = limitMs;
  }

  start(): void {
    this.#beatAtMs = performance.now();
    this.#cpuMs = cpuMs();
    this.#stop = repeatTogether(this.#beatMs, () => this.#beat());
  }

  stalledMs(): number {
    this.#beat();
    return this.#stalls.reduce((sum, { forMs }) => sum + forMs, 0);
  }

  isStuck(): boolean {
    return this.stalledMs() > this.#limitMs;
  }

  close(): void {
    this.#stop();
  }

  /** Also runs while a beat is overdue: the request may arrive before the timer. */
  #beat(): void {
    const nowMs = performance.now();
    const usedMs = cpuMs();
    const lateMs = nowMs - this.#beatAtMs - this.#beatMs;
    if (lateMs > this.#beatMs)
      this.#stalls.push({ atMs: nowMs, forMs: Math.min(lateMs, usedMs - this.#cpuMs) });
    while ((this.#stalls[0]?.atMs ?? nowMs) < nowMs - this.#windowMs) this.#stalls.shift();
    this.#beatAtMs = nowMs;
    this.#cpuMs = usedMs;
  }
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
