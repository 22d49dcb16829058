/** Time for which work that takes turns holds the event loop before everything else has its turn. */
const TURN_MS = 4;

/** Pieces of work that wait, from `at` on, and those behind them: removing the first of one long list would copy the rest. */
let pieces: (() => void)[] = [];
let at = 0;
let behind: (() => void)[] = [];

let isBusy = false;
let untilMs = 0;

/**
 * Resolves when the caller may go on with a piece of work that holds the event loop: after the pieces that came before, and in a
 * later turn of the event loop where these took long. So a long page does not hold up other requests, timers and deliveries.
 */
export function itsTurn(): Promise<void> {
  return new Promise((resolve) => {
    behind.push(resolve);
    if (isBusy) return;
    isBusy = true;
    beginTurn();
  });
}

let ending: Promise<void> | null = null;

/** Resolves in a later turn of the event loop: what has come by now, such as deliveries to send, goes first. */
export function laterTurn(): Promise<void> {
  ending ??= new Promise((resolve) => {
    setImmediate(() => {
      ending = null;
      resolve();
    });
  });
  return ending;
}

function beginTurn(): void {
  untilMs = performance.now() + TURN_MS;
  goOn();
}

/** Lets the next piece of work begin. Once none waits, a turn is over, so that the next piece begins at once. */
function goOn(): void {
  if (at === pieces.length) [pieces, at, behind] = [behind, 0, []];
  const next = pieces[at];
  if (next === undefined) {
    isBusy = false;
    return;
  }
  if (performance.now() >= untilMs) {
    setImmediate(beginTurn);
    return;
  }
  at += 1;
  next();
  // A tick comes after all microtasks: once the piece of work has ended, or waits.
  queueMicrotask(() => process.nextTick(goOn));
}
