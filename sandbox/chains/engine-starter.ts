import type { Engine } from './engine.ts';

/** The executor of the transactions of EVM chains: this process, or the named program, which is an anvil. */
export type EngineKind = 'js' | { anvil: string };

/** Returns what starts an engine for a chain. Its module is loaded then, so that a sandbox without transactions is light. */
export function engineStarter(kind: EngineKind): (chainId: number) => Promise<Engine> {
  if (kind === 'js') return async (chainId) => (await import('./js-engine.ts')).createJsEngine(chainId);
  const { anvil } = kind;
  return async (chainId) => (await import('./anvil-engine.ts')).createAnvilEngine(anvil, chainId);
}
