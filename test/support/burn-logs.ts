import {
  type AbiEvent,
  encodeAbiParameters,
  encodeEventTopics,
  encodePacked,
  type Hex,
  pad,
  parseAbi,
} from 'viem';

/** A log without its place. */
export type BurnLog = { address: Hex; topics: Hex[]; data: Hex };

/** A burn message. `amount` and `nonce` are decimal digits. */
export type BurntToken = { domain: number; nonce: string; recipient: Hex; amount: string };

const ZERO = pad('0x', { size: 32 });

const [FULFILLED, SENT, RECEIVED, RECEIVED_2] = parseAbi([
  'event IntentFulfilled(bytes32 indexed intentHash, bytes32 indexed claimant)',
  'event MessageSent(bytes message)',
  'event MessageReceived(address indexed caller, uint32 sourceDomain, uint64 indexed nonce, bytes32 sender, bytes messageBody)',
  'event MessageReceived(address indexed caller, uint32 sourceDomain, bytes32 indexed nonce, bytes32 sender, uint32 indexed finalityThresholdExecuted, bytes messageBody)',
]);

/** The event of a deployment's Portal. */
export function fulfilledLog(address: Hex, intentHash: Hex): BurnLog {
  return logOf(address, FULFILLED, { intentHash, claimant: pad('0x51', { size: 32 }) });
}

/** The event of the transmitter where a token is burnt. */
export function sentLog(address: Hex, burnt: BurntToken): BurnLog {
  const message = encodePacked(
    ['uint32', 'uint32', 'uint32', 'uint64', 'bytes32', 'bytes32', 'bytes32', 'bytes'],
    [0, burnt.domain, 2, BigInt(burnt.nonce), ZERO, ZERO, ZERO, bodyOf(burnt)],
  );
  return logOf(address, SENT, { message });
}

/** The event of version 2 there: its nonce is not assigned yet. */
export function sentLog2(address: Hex, burnt: BurntToken): BurnLog {
  const body = encodePacked(
    ['bytes', 'uint256', 'uint256', 'uint256'],
    [`0x00000001${bodyOf(burnt).slice(10)}`, 0n, 0n, 0n],
  );
  const message = encodePacked(
    ['uint32', 'uint32', 'uint32', 'bytes32', 'bytes32', 'bytes32', 'bytes32', 'uint32', 'uint32', 'bytes'],
    [1, burnt.domain, 2, ZERO, ZERO, ZERO, ZERO, 1_000, 0, body],
  );
  return logOf(address, SENT, { message });
}

/** The event of the transmitter where a token is minted. */
export function receivedLog(address: Hex, burnt: BurntToken): BurnLog {
  const { domain: sourceDomain, nonce } = burnt;
  const args = {
    caller: address,
    sourceDomain,
    nonce: BigInt(nonce),
    sender: ZERO,
    messageBody: bodyOf(burnt),
  };
  return logOf(address, RECEIVED, args);
}

/** The event of version 2 there. */
export function receivedLog2(address: Hex, burnt: BurntToken): BurnLog {
  return logOf(address, RECEIVED_2, {
    caller: address,
    sourceDomain: burnt.domain,
    nonce: pad('0x77', { size: 32 }),
    sender: ZERO,
    finalityThresholdExecuted: 1_000,
    messageBody: bodyOf(burnt),
  });
}

function bodyOf({ recipient, amount }: BurntToken): Hex {
  return encodePacked(
    ['uint32', 'bytes32', 'bytes32', 'uint256', 'bytes32'],
    [0, ZERO, pad(recipient, { size: 32 }), BigInt(amount), ZERO],
  );
}

function logOf(address: Hex, event: AbiEvent, args: Record<string, unknown>): BurnLog {
  const topics = encodeEventTopics({ abi: [event], args });
  const plain = event.inputs.filter(({ indexed }) => indexed !== true);
  const data = encodeAbiParameters(
    plain,
    plain.map(({ name }) => args[name ?? '']),
  );
  return { address, topics: topics.flatMap((topic) => (typeof topic === 'string' ? [topic] : [])), data };
}
