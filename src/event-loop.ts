/** Time for which work that takes turns holds the event loop before everything else has its turn. */
const TURN_MS = 4;

const waiting: (() => void)[] = [];
let isBusy = false;
let untilMs = 0;

/**
 * Resolves when the caller may go on with a piece of work that holds the event loop: after the pieces that came before, and in a
 * later turn of the event loop where these took long. So a long page does not hold up other requests, timers and deliveries.
 */
export function itsTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (isBusy) return;
    isBusy = true;
    beginTurn();
  });
}

function beginTurn(): void {
  untilMs = performance.now() + TURN_MS;
  goOn();
}

/** Lets the next piece of work begin. Once none waits, a turn is over, so that the next piece begins at once. */
function goOn(): void {
  if (waiting.length > 0 && performance.now() >= untilMs) {
    setImmediate(beginTurn);
    return;
  }
  const next = waiting.shift();
  isBusy = next !== undefined;
  next?.();
  // A tick comes after all microtasks: once the piece of work has ended, or waits.
  if (isBusy) queueMicrotask(() => process.nextTick(goOn));
}
