import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Market } from '../sandbox/world/market.ts';

const STEP_MS = 3_000;

/** What happens to prices, again and again: a dearer market, a small move, nobody who quotes, and back. */
const STEPS: readonly Market[] = [
  { extraFee: 0.02, solvers: 3 },
  { extraFee: 0.021, solvers: 2 },
  { extraFee: 0, solvers: 0 },
  { extraFee: 0, solvers: 3 },
];

/** Moves the sandbox's prices every few seconds. Returns what ends it. */
export function moveMarket(sandbox: Sandbox): () => void {
  let step = 0;
  const timer = setInterval(() => {
    const market = STEPS[step % STEPS.length];
    if (market !== undefined) sandbox.setMarket(market);
    step += 1;
  }, STEP_MS);
  return () => clearInterval(timer);
}
