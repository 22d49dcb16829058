import type { FastifyInstance } from 'fastify';
import { type Chains, createChains, type StatedPayment } from './chains/chains.ts';
import { type EngineKind, engineStarter } from './chains/engine-starter.ts';
import { createFaucet } from './chains/faucet.ts';
import { createRpcPort, type RpcPort } from './chains/rpc-port.ts';
import { type Answering, createAnswering, type LoggedAnswer, type Showing } from './control/answer-log.ts';
import { type ChainState, type ChainsChange, createControl, type Pace } from './control/control.ts';
import { type CameRequest, createRequestLog, type RequestLog } from './control/request-log.ts';
import { createOpenService } from './endpoints/open-service.ts';
import { createService, GATEWAY_WORD } from './endpoints/service.ts';
import { createDirector, type Director } from './faults/director.ts';
import { createDistortion } from './faults/distort.ts';
import type { Fault } from './faults/fault.ts';
import { isLost, type Spoilings } from './faults/fault-hooks.ts';
import { createFaults } from './faults/faults.ts';
import { createIntents } from './quotes/intents.ts';
import { createSolvers } from './quotes/pricing.ts';
import { createQuoteDesk } from './quotes/quote-desk.ts';
import { createQuoteShape, type Wire } from './quotes/quote-shape.ts';
import { createQuoteSigners, type QuoteSigners } from './quotes/quote-signers.ts';
import { createAgenda } from './world/agenda.ts';
import { CHAINS, type Token } from './world/chains.ts';
import { createClock } from './world/clock.ts';
import { fundByTransaction, noticeFunding } from './world/funding.ts';
import { createGenerator } from './world/generator.ts';
import { transactionHash, uuid } from './world/identifiers.ts';
import { type Market, USUAL_MARKET } from './world/market.ts';
import { createOrders } from './world/orders.ts';
import type { TransferPlan } from './world/plan.ts';
import { randomStream } from './world/random.ts';
import { createSubmits } from './world/submits.ts';
import { Timeline } from './world/timeline.ts';
import { createWorld, type Subjects, type Transition, type World } from './world/world.ts';

/** Options of a sandbox. */
export type SandboxOptions = {
  /** Address of all ports. Default `127.0.0.1`. */
  host?: string;
  /** Default 0: any free port. */
  port?: number;
  /** Default 0: any free port. */
  controlPort?: number;
  /** Port of the open quoting service. Default 0: any free port. */
  quotesPort?: number;
  /** The same seed gives the same wallets, ids, hashes and lives. Default 1. */
  seed?: number;
  /** Factor by which transfers live faster than usual; births are not affected. Default 1. */
  timeScale?: number;
  /** Default `sandbox-key`. */
  apiKey?: string;
  /** Default true. When false, a request without a key is answered too; a wrong key is refused as ever. */
  requiresKey?: boolean;
  /** True where USDC from an EVM chain is quoted as a local intent, which its issuer carries on. Default false. */
  localIntents?: boolean;
  /** Shape of quotes. Default `0.9.0`, as recorded; `strict` sends the members of the interface alone. */
  wire?: Wire;
  /** Births per second of wall clock; 0 for none but those that are announced at start. Default 0.5. */
  transfersPerSecond?: number;
  /** Number of wallets that send and receive. Default 10. */
  wallets?: number;
  /** Exponent of Zipf's law by which the first wallets send and receive more than the last. Default 0: all alike. */
  walletSkew?: number;
  /** Number of transfers, over all wallets, that ended in the days before the start. Default 0. */
  pastTransfers?: number;
  /** Seconds from a block's birth to its finality, before time is scaled. Default 60. */
  finalitySeconds?: number;
  /** Name of the EIP-712 domain of quotes. Default `ServiceQuoteV1`, as in the interface. */
  quoteDomain?: string;
  /** Word in the paths of the deposit-vault endpoints. Default `deposit-gateway`, as in the interface. */
  gatewayPrefix?: string;
  /** Engine of the transactions on the EVM chains. Default `js`: this process. */
  evm?: EngineKind;
  /** Default false. When true, `POST /faucet` of the control port gives coins and tokens. */
  faucet?: boolean;
  faults?: readonly Fault[];
};

/**
 * A local upstream that needs no key from anyone. It serves the interface on one port and the open quoting service on
 * another; a third reports the real changes. The constructor checks the options (RangeError) and creates the world; `start`
 * starts it.
 */
export class Sandbox {
  readonly apiKey: string;
  readonly #host: string;
  readonly #ports: { service: number; control: number; quotes: number };
  readonly #nowMs = createClock();
  readonly #chains: Chains;
  readonly #rpc: RpcPort;
  readonly #world: World;
  readonly #director: Director;
  readonly #timeline: Timeline;
  readonly #answering: Answering;
  readonly #requests: RequestLog;
  readonly #service: FastifyInstance;
  readonly #openService: FastifyInstance;
  readonly #control: FastifyInstance;
  readonly #signers: QuoteSigners;
  #market = USUAL_MARKET;

  constructor(options: SandboxOptions = {}) {
    const { seed = 1, timeScale = 1, transfersPerSecond = 0.5 } = options;
    const { wallets = 10, walletSkew = 0, pastTransfers = 0, finalitySeconds = 60 } = options;
    expectNumber('timeScale', timeScale, { above: 0 });
    expectNumber('transfersPerSecond', transfersPerSecond, { least: 0 });
    expectNumber('wallets', wallets, { least: 1, whole: true });
    expectNumber('walletSkew', walletSkew, { least: 0 });
    expectNumber('pastTransfers', pastTransfers, { least: 0, whole: true });
    expectNumber('finalitySeconds', finalitySeconds, { least: 0 });
    expectNumber('seed', seed, { least: Number.MIN_SAFE_INTEGER, whole: true });
    this.apiKey = options.apiKey ?? 'sandbox-key';
    this.#host = options.host ?? '127.0.0.1';
    this.#ports = {
      service: options.port ?? 0,
      control: options.controlPort ?? 0,
      quotes: options.quotesPort ?? 0,
    };

    const faults = createFaults({ seed });
    for (const fault of options.faults ?? []) faults.add(fault);
    const spoilings: Spoilings = new WeakMap();
    const agenda = createAgenda();
    const generator = createGenerator({ seed, wallets, walletSkew });
    this.#chains = createChains({
      seed,
      timeScale,
      finality: { seconds: finalitySeconds / timeScale },
      agenda,
      evm: {
        nowMs: this.#nowMs,
        start: engineStarter(options.evm ?? 'js'),
        scheduled: () => this.#timeline.rearm(),
        executed: (executed) => noticeFunding(orders, { executed, solvers: this.#market.solvers }),
      },
    });
    this.#rpc = createRpcPort({ chains: this.#chains, faults, nowMs: this.#nowMs });
    this.#world = createWorld({
      wallets: generator.wallets.map((wallet) => wallet.address),
      moved: this.#chains.follow,
      remembered: this.#chains.remember,
    });
    /** The plan of a transfer, with the lie that a fault draws for it, or its own. */
    const prepare = (plan: TransferPlan): TransferPlan => {
      const path = `/chains/${plan.destination.chain.chainId}`;
      const drawn = faults.strikeAlways('payment', { path, key: plan.intentHash })?.lie ?? null;
      return this.#chains.withOtherPayment({ ...plan, lie: plan.lie ?? drawn });
    };
    this.#director = createDirector({
      world: this.#world,
      agenda,
      generator,
      timeScale,
      pastTransfers,
      transfersPerSecond,
      isReorganised: () => faults.strike('regressions', '/') !== undefined,
      prepare,
    });
    this.#timeline = new Timeline({ agenda, nowMs: this.#nowMs });
    this.#answering = createAnswering({
      nowMs: this.#nowMs,
      isLost: (request) => isLost(spoilings, request),
    });
    this.#requests = createRequestLog({ nowMs: this.#nowMs });
    this.#signers = createQuoteSigners({
      seed,
      domain: options.quoteDomain ?? 'ServiceQuoteV1',
    });
    const intents = createIntents({ seed, timeScale });
    const orders = createOrders({
      world: this.#world,
      director: this.#director,
      generator,
      intents,
      hasLocalIntents: options.localIntents ?? false,
      timeScale,
      nowMs: this.#nowMs,
      changed: () => this.#timeline.rearm(),
      at: (dueMs, work) => agenda.add(dueMs, work),
      prepare,
    });
    const submits = createSubmits({ orders, nowMs: this.#nowMs, newJob: (index) => drawJob(seed, index) });
    const shape = createQuoteShape({ wire: options.wire ?? '0.9.0', intents });
    const desk = createQuoteDesk({
      solvers: createSolvers({ seed }),
      signers: this.#signers,
      orders,
      market: () => this.#market,
    });
    const port = {
      answering: this.#answering,
      requests: this.#requests,
      faults,
      spoilings,
      nowMs: this.#nowMs,
    };
    const statuses = { world: this.#world, distortion: createDistortion({ faults, nowMs: this.#nowMs }) };
    this.#service = createService({
      apiKey: this.apiKey,
      requiresKey: options.requiresKey ?? true,
      gatewayPrefix: options.gatewayPrefix ?? GATEWAY_WORD,
      ...statuses,
      quoting: { signers: this.#signers, desk, shape },
      ordering: { orders, submits, permitted: (token, owner) => this.#countPermit(token, owner) },
      rpc: this.#rpc,
      port,
    });
    this.#openService = createOpenService({ seed, timeScale, desk, intents, statuses, port });
    this.#control = createControl({
      subjects: () => this.subjects(),
      logs: {
        transitions: this.#world.transitions,
        answers: this.#answering.log,
        showings: this.#answering.showings,
        requests: this.#requests.log,
        payments: this.#chains.stated,
      },
      chains: { read: () => this.chains(), set: (change) => this.setChains(change) },
      pace: { read: () => this.pace(), set: (perSecond) => this.setPace(perSecond) },
      market: { read: () => this.#market, set: (change) => this.setMarket(change) },
      fund: (wanted) => fundByTransaction(orders, wanted),
      faucet: options.faucet === true ? createFaucet(this.#chains) : null,
      faults,
      rotateSigners: (chainId) => this.#rotateSigners(chainId),
    });
  }

  /** Opens the ports and starts the transfers. When one port cannot be opened, none stays open. */
  async start(): Promise<void> {
    this.#director.begin(this.#nowMs());
    try {
      await this.#listen(this.#service, 'port', this.#ports.service);
      await this.#listen(this.#openService, 'quotesPort', this.#ports.quotes);
      await this.#listen(this.#control, 'controlPort', this.#ports.control);
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#timeline.start();
  }

  async #listen(app: FastifyInstance, option: keyof SandboxOptions, port: number): Promise<void> {
    try {
      await app.listen({ host: this.#host, port });
    } catch (cause) {
      if (!(cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE')) throw cause;
      const found = `found ${port}, which is in use on ${this.#host}`;
      throw new Error(`sandbox option ${option}: ${found}, expected a free port (0 takes any)`, { cause });
    }
  }

  async close(): Promise<void> {
    this.#timeline.close();
    await Promise.all([this.#service.close(), this.#openService.close(), this.#control.close()]);
    await this.#chains.close();
  }

  /** The base address of the interface. Throws before `start`. */
  get url(): string {
    return originOf(this.#service);
  }

  /** The base address of the open quoting service. Throws before `start`. */
  get quotesUrl(): string {
    return originOf(this.#openService);
  }

  /** The base address of the control port. Throws before `start`. */
  get controlUrl(): string {
    return originOf(this.#control);
  }

  /** Subjects so far that a client can subscribe to, without past transfers. */
  subjects(): Subjects {
    return this.#world.subjects();
  }

  /** The real status changes, in order; at most the last 500,000. `sinceMs` is inclusive. */
  transitions(sinceMs?: number): Transition[] {
    return this.#world.transitions.read(sinceMs);
  }

  /** Answers of the main port with status 200, in order; at most the last 500,000. `sinceMs` is inclusive. */
  answers(sinceMs?: number): LoggedAnswer[] {
    return this.#answering.log.read(sinceMs);
  }

  /** Records of subjects in readable answers of the main port, in order; as `answers`. */
  showings(sinceMs?: number): Showing[] {
    return this.#answering.showings.read(sinceMs);
  }

  /** Every request on the main port and on that of the open quoting service, with any outcome; as `answers`. */
  requests(sinceMs?: number): CameRequest[] {
    return this.#requests.log.read(sinceMs);
  }

  pace(): Pace {
    return {
      transfersPerSecond: this.#director.transfersPerSecond(),
      livingTransfers: this.#director.livingTransfers(),
    };
  }

  /** Changes the births per second of wall clock. At 0 everything drains: `pace().livingTransfers` reaches 0. */
  setPace(transfersPerSecond: number): void {
    expectNumber('transfersPerSecond', transfersPerSecond, { least: 0 });
    this.#director.setPace(transfersPerSecond, this.#nowMs());
    this.#timeline.rearm();
  }

  /** Changes the prices of all quotes; a missing member stays unchanged. Returns the market. */
  setMarket(change: { [Member in keyof Market]?: Market[Member] | undefined }): Market {
    const { extraFee = this.#market.extraFee, solvers = this.#market.solvers } = change;
    this.#market = { extraFee, solvers };
    return this.#market;
  }

  /** The upstream's statements about payments, and the contents of their chains; at most the last 200,000. */
  payments(sinceMs?: number): StatedPayment[] {
    return this.#chains.stated.read(sinceMs);
  }

  /** The URL of an endpoint of a chain, of any name. Throws before `start`. */
  rpcUrl(chainId: number, endpoint: string): string {
    return `${this.url}/chains/${chainId}/${endpoint}`;
  }

  chains(): ChainState[] {
    const calls = this.#rpc.calls();
    const nowMs = this.#nowMs();
    return [...this.#chains.all.values()].map(({ chain: { chainId, name }, blocks }) => ({
      chainId,
      name,
      head: blocks.head(nowMs),
      finalized: blocks.finalized(nowMs),
      finality: blocks.finality(),
      calls: calls[chainId] ?? {},
    }));
  }

  /** Sets the distance of finality, or reorganises the newest blocks; on one chain, or on all. */
  setChains({ chainId, finality, reorganise }: ChainsChange): ChainState[] {
    const nowMs = this.#nowMs();
    for (const [id, { blocks }] of this.#chains.all) {
      if (chainId !== undefined && chainId !== id) continue;
      if (finality !== undefined) blocks.setFinality(finality);
      if (reorganise !== undefined) blocks.reorganise(blocks.head(nowMs) - reorganise + 1, nowMs);
    }
    return this.chains();
  }

  #countPermit({ chainId, address: token }: Token, owner: string): void {
    this.#chains.all.get(chainId)?.machine?.countPermit({ token, owner });
  }

  #rotateSigners(chainId: number | undefined): { chainId: number; quoteSigner: string }[] {
    const chainIds = CHAINS.map((chain) => chain.chainId).filter(
      (id) => chainId === undefined || id === chainId,
    );
    for (const id of chainIds) this.#signers.rotate(id);
    return chainIds.map((id) => ({ chainId: id, quoteSigner: this.#signers.addressOf(id) }));
  }
}

function drawJob(seed: number, index: number): { uuid: string; permitTxHash: string } {
  const random = randomStream(seed, 'submitted-job', index);
  return { uuid: uuid(random), permitTxHash: transactionHash(random, 'evm') };
}

function originOf(app: FastifyInstance): string {
  const [address] = app.addresses();
  if (address === undefined || typeof address === 'string') throw new Error('the sandbox is not started');
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${host}:${address.port}`;
}

function expectNumber(
  name: string,
  found: number,
  { least, above, whole }: { least?: number; above?: number; whole?: true },
): void {
  const fits =
    Number.isFinite(found) &&
    (least === undefined || found >= least) &&
    (above === undefined || found > above) &&
    (!whole || Number.isSafeInteger(found));
  if (fits) return;
  const kind = whole ? 'a whole number' : 'a number';
  const range = above === undefined ? `of at least ${least}` : `above ${above}`;
  throw new RangeError(`sandbox option ${name}: found ${found}, expected ${kind} ${range}`);
}
