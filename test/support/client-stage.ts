import { generatePrivateKey } from 'viem/accounts';
import { afterAll, beforeAll } from 'vitest';
import type { ClientLibrary, ClientWallet } from './client-libraries.ts';
import { usdcOn } from './sandbox-order.ts';
import { SANDBOX_KEY, SandboxProcess } from './sandbox-process.ts';
import { ServiceClient } from './service-client.ts';
import { Stage } from './stage.ts';

/** The names of a deployment: a client has them from its documentation. */
export const DEPLOYMENT = { quoteDomain: 'AcmeQuoteV1', gatewayPrefix: 'acme-vaults' };

/** The sandbox program under the names of a deployment, for the tests of one file. */
export class ClientStage {
  #sandbox: SandboxProcess | null = null;

  /** Registers the start before the tests of the file, and the end after them. */
  constructor(flags: readonly string[]) {
    const cleanups: (() => Promise<void>)[] = [];
    beforeAll(async () => {
      const names = ['--quote-domain', DEPLOYMENT.quoteDomain, '--gateway-prefix', DEPLOYMENT.gatewayPrefix];
      const ports = ['--port', '0', '--control-port', '0', '--transfers-per-second', '0', '--wallets', '1'];
      const stage = new Stage((cleanUp) => cleanups.push(cleanUp));
      const program = await stage.intentwatch(['sandbox', ...ports, ...names, ...flags]);
      this.#sandbox = await SandboxProcess.of(program);
    });
    afterAll(() => Promise.all(cleanups.map((cleanUp) => cleanUp())));
  }

  get sandbox(): SandboxProcess {
    if (this.#sandbox === null) throw new Error('the sandbox is not started');
    return this.#sandbox;
  }

  client(apiKey: string | null = SANDBOX_KEY): ServiceClient {
    const { url: baseUrl, quotesUrl } = this.sandbox;
    return new ServiceClient({ baseUrl, quotesUrl, apiKey, prefix: DEPLOYMENT.gatewayPrefix });
  }

  /** A new wallet on a chain of the sandbox. It has nothing. */
  wallet(library: ClientLibrary, chainId: number): ClientWallet {
    const rpcUrl = `${this.sandbox.url}/chains/${chainId}/client`;
    return library.wallet(generatePrivateKey(), { chainId, rpcUrl });
  }

  /** The same with a coin and 1,000 USDC of the chain. */
  async fundedWallet(library: ClientLibrary, chainId: number): Promise<ClientWallet> {
    const wallet = this.wallet(library, chainId);
    await this.sandbox.give(wallet.address, { chainId, token: usdcOn(chainId) });
    return wallet;
  }
}
