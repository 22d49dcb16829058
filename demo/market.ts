import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Market } from '../sandbox/world/market.ts';

const STEP_MS = 3_000;

const STEPS: readonly Market[] = [
  { extraFee: 0.02, solvers: 3 },
  { extraFee: 0.021, solvers: 2 },
  { extraFee: 0, solvers: 0 },
  { extraFee: 0, solvers: 3 },
];

/** Moves the sandbox's prices every few seconds. Returns the function that ends it. */
export function moveMarket(sandbox: Sandbox): () => void {
  let step = 0;
  const timer = setInterval(() => {
    const market = STEPS[step % STEPS.length];
    if (market !== undefined) sandbox.setMarket(market);
    step += 1;
  }, STEP_MS);
  return () => clearInterval(timer);
}
