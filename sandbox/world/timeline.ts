import type { Agenda } from './agenda.ts';

const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** Runs an agenda by the clock with one timer, which does not hold the process alive. */
export class Timeline {
  readonly #agenda: Agenda;
  readonly #nowMs: () => number;
  #timer: NodeJS.Timeout | null = null;
  #running = false;

  constructor({ agenda, nowMs }: { agenda: Agenda; nowMs: () => number }) {
    this.#agenda = agenda;
    this.#nowMs = nowMs;
  }

  start(): void {
    this.#running = true;
    this.#advance();
  }

  /** Sets the timer again; call it after the agenda was changed from outside. */
  rearm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const dueMs = this.#agenda.nextDueMs();
    if (!this.#running || dueMs === null) return;
    const waitMs = Math.min(Math.max(0, Math.ceil(dueMs - this.#nowMs())), LONGEST_WAIT_MS);
    this.#timer = setTimeout(() => this.#advance(), waitMs);
    this.#timer.unref();
  }

  close(): void {
    this.#running = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #advance(): void {
    this.#agenda.runDue(this.#nowMs());
    this.rearm();
  }
}
