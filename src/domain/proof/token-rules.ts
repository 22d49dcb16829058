import { type AddedToken, COMMON, extendDirectory, tokenKey } from '../transfers/chains.ts';
import type { JudgeRules } from './verdict.ts';

/**
 * Well-known tokens whose logs do not say what is received: balances change by themselves (stETH, AMPL, OUSD, USDM), or
 * the contract may take a fee (PAXG). They are listed only where the user lists them.
 */
const NOT_CHECKABLE: readonly (readonly [chainId: string, address: string])[] = [
  ['1', '0xae7ab96520DE3A18E5e111B5EaAb095312D7fE84'],
  ['1', '0xD46bA6D942050d489DBd938a2C909A5d5039A161'],
  ['1', '0x2A8e1E676Ec238d8A992307B495b45B3fEAa5e86'],
  ['1', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['10', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['8453', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['42161', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['1', '0x45804880De22913dAFE09f4980848ECE6EcbAf78'],
];

/**
 * Which tokens of a chain are checked: those of the config and of the packaged list. What the upstream lists does not count,
 * for it is the upstream's word that is checked.
 */
export function tokenRules(config: {
  tokens: readonly AddedToken[];
  uncheckedTokens: readonly { chainId: string; address: string }[];
}): (chainId: string) => Pick<JudgeRules, 'isListed' | 'isCheckable'> {
  const listed = extendDirectory({ chains: [], tokens: config.tokens }, COMMON);
  const unchecked = new Set([
    ...NOT_CHECKABLE.map(([chainId, address]) => tokenKey(chainId, address)),
    ...config.uncheckedTokens.map(({ chainId, address }) => tokenKey(chainId, address)),
  ]);
  return (chainId) => ({
    isListed: (token) => listed.token(chainId, token) !== null,
    isCheckable: (token) => !unchecked.has(tokenKey(chainId, token)),
  });
}
