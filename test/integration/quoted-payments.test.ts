import type { Hex } from 'viem';
import { describe, expect, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import {
  type BurntToken,
  fulfilledLog,
  receivedLog,
  receivedLog2,
  sentLog,
  sentLog2,
} from '../support/burn-logs.ts';
import { opening } from '../support/opening.ts';
import {
  destinationTx,
  now,
  PROMISED_TOKENS,
  promisingQuote,
  QUOTE_ID,
  QUOTE_INTENT,
  quoteStage,
  sourceTx,
} from '../support/quote-stage.ts';
import { RpcNodes, transferLog } from '../support/rpc-nodes.ts';

const open = opening();
const { started } = open;
const { serving, quoteFile, watching } = quoteStage(open);

const OWNER = '0x52908400098527886e0f7030069857d2e4169ee7';
const VAULT = '0xde709f2102306220921060314715629080e2fb77';
const BACK = `0x${'ba'.repeat(20)}`;
const NOBODY = `0x${'0'.repeat(40)}`;
const PORTAL: Hex = `0x${'99'.repeat(20)}`;
const TRANSMITTER: Hex = `0x${'77'.repeat(20)}`;
const REFUND_TX = `0x${'ef'.repeat(32)}`;
const FULFIL_TX = `0x${'f1'.repeat(32)}`;

/** Nodes of the chains, each with two hosts, and a config of them. */
async function chains() {
  const source = await started(new RpcNodes());
  const target = await started(new RpcNodes('10'));
  source.logs.set(sourceTx.txHash, [
    transferLog({ token: sourceTx.token, from: OWNER, to: VAULT, amount: sourceTx.amount }),
  ]);
  const config = (more: object = {}, atTarget: object = {}) => ({
    8453: { rpc: source.rpc, ...more },
    10: { rpc: target.rpc, ...atTarget },
  });
  return { source, target, config };
}

/** The proof of a payment of a transfer whose quote was imported, and whose record shows it in its last status. */
async function proofOf(
  payment: string,
  { quote, record, config }: { quote: JsonObject; record: JsonObject; config: object },
): Promise<RenderedEvent> {
  const updatedAt = now() - 10;
  const upstream = await serving(({ query }) => {
    if (query.intentHash === undefined) {
      const submitted = { id: QUOTE_ID, type: 'quote', status: 'submitted', updatedAt, steps: [] };
      return { records: [{ ...submitted, intentHashes: [QUOTE_INTENT] }] };
    }
    return { records: [{ id: `intent:${QUOTE_INTENT}`, type: 'intent', updatedAt, sourceTx, ...record }] };
  });
  const { hook, config: watched, start } = await watching(upstream.url, [{ file: await quoteFile(quote) }]);
  watched.more = { chains: config };
  await start();
  const isIt = ({ data }: RenderedEvent): boolean => data.proof?.payment === payment;
  const events = await hook.until((all) => all.some(isIt));
  const event = events.find(isIt);
  if (event === undefined) throw new Error('expected a proof');
  return event;
}

describe('the refund of a transfer', () => {
  const record = {
    status: 'refunded',
    steps: [
      {
        type: 'bridge',
        intentHash: QUOTE_INTENT,
        transactions: { refunded: { chainId: 8453, txHash: REFUND_TX } },
      },
    ],
  };
  test.each<[string, string, JsonObject, object]>([
    [
      'is verified at the recipient that the quote states, and no record does',
      BACK,
      { refundRecipient: BACK },
      { type: 'intent.verified', data: { proof: { checked: expect.arrayContaining(['recipient']) } } },
    ],
    [
      'is disputed at the payer, where the quote states another recipient',
      OWNER,
      { refundRecipient: BACK },
      { type: 'intent.disputed', data: { proof: { reason: 'other-recipient' } } },
    ],
    [
      'is verified at the payer, where the quote states none',
      OWNER,
      {},
      { type: 'intent.verified', data: { proof: { checked: expect.arrayContaining(['recipient']) } } },
    ],
  ])('%s', async (_, to, stated, expected) => {
    const { source, config } = await chains();
    source.logs.set(REFUND_TX, [transferLog({ token: sourceTx.token, from: VAULT, to, amount: '990000' })]);
    const quote = { ...(await promisingQuote()), ...stated };
    const event = await proofOf('refund', { quote, record, config: config() });
    expect(event).toMatchObject(expected);
    expect(event.data.transfer?.refundRecipient).toBe(stated.refundRecipient);
  });
});

describe('the delivery of a local intent', () => {
  const burnt: BurntToken = { domain: 6, nonce: '4711', recipient: OWNER, amount: '999000' };
  const record = {
    status: 'filled',
    destinationTx: { ...destinationTx, amount: burnt.amount },
    steps: [
      {
        type: 'bridge',
        intentHash: QUOTE_INTENT,
        status: 'FULFILLED',
        transactions: { fulfilled: { chainId: 8453, txHash: FULFIL_TX } },
      },
    ],
  };
  const pinned = { fulfilments: { address: PORTAL }, transmitter: TRANSMITTER };
  const minted = transferLog({
    token: PROMISED_TOKENS.destination,
    from: NOBODY,
    to: burnt.recipient,
    amount: burnt.amount,
  });
  const unproven = { type: 'intent.unproven', data: { proof: { reason: 'not-tied' } } };

  /** The burn and the mint of a version, by these contracts. */
  const VERSIONS = {
    1: { sent: sentLog(TRANSMITTER, burnt), received: receivedLog(TRANSMITTER, burnt) },
    2: { sent: sentLog2(TRANSMITTER, burnt), received: receivedLog2(TRANSMITTER, burnt) },
  };

  async function delivered(
    { sent, received } = VERSIONS[1],
    settings: { source?: object; target?: object } = { source: pinned, target: { transmitter: TRANSMITTER } },
  ): Promise<RenderedEvent> {
    const { source, target, config } = await chains();
    source.logs.set(FULFIL_TX, [fulfilledLog(PORTAL, QUOTE_INTENT), sent]);
    target.logs.set(destinationTx.txHash, [minted, received]);
    const steps = [{ type: 'bridge', intents: [{ role: 'local', intentHash: QUOTE_INTENT }] }];
    const quote = { ...(await promisingQuote()), steps };
    return proofOf('destination', { quote, record, config: config(settings.source, settings.target) });
  }

  test('is verified by the message of its burn, once both contracts are pinned', async () => {
    expect(await delivered()).toMatchObject({
      type: 'intent.verified',
      data: {
        proof: {
          checked: expect.arrayContaining(['recipient', 'intent', 'amount']),
          burn: { chainId: '8453', txHash: FULFIL_TX, message: '6:4711' },
        },
      },
    });
  });

  test('is unproven by messages of version 2, which have no number where they are sent', async () => {
    expect(await delivered(VERSIONS[2])).toMatchObject(unproven);
  });

  test('is unproven without pinned contracts, though the money arrived', async () => {
    const event = await delivered(VERSIONS[1], {});
    expect(event).toMatchObject(unproven);
    expect(event.data.proof).toMatchObject({ moved: [{ to: OWNER, amount: '999000' }] });
  });

  test('is unproven and not disputed where the minting transaction has the message of another burn', async () => {
    const received = receivedLog(TRANSMITTER, { ...burnt, nonce: '4712', recipient: VAULT });
    expect(await delivered({ ...VERSIONS[1], received })).toMatchObject(unproven);
  });
});
