import { randomBytes } from 'node:crypto';
import {
  encodeAbiParameters,
  type Hex,
  isHex,
  keccak256,
  parseAbiParameters,
  type TypedDataDefinition,
  toHex,
} from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';

const PERMIT2 = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
const PERMIT3 = '0x000000000033D473030F116DDee9F6b43AC78ba3';

/** The signer, and the signed payment. Amounts are base units; `to` receives, or may spend. */
export type Signing = {
  key: Hex;
  chainId: number;
  token: string;
  to: string;
  value: bigint;
  /** The owner of the tokens; the signer when omitted. */
  from?: string;
  nonce?: Hex;
  /** Unix seconds; an hour from now when omitted. */
  until?: bigint;
};

/** A signed authorization in its sent form: amounts and times as decimal strings. */
export type Signed = { authorization: Record<string, unknown>; signature: Hex };

function newNonce(): Hex {
  return toHex(randomBytes(32));
}

function inAnHour(): bigint {
  return BigInt(Math.floor(Date.now() / 1000) + 3600);
}

/** Signs an ERC-3009 transfer. */
export async function signErc3009(signing: Signing): Promise<Signed> {
  const account = privateKeyToAccount(signing.key);
  const authorization = {
    from: signing.from ?? account.address,
    to: signing.to,
    value: signing.value,
    validAfter: 0n,
    validBefore: signing.until ?? inAnHour(),
    nonce: signing.nonce ?? newNonce(),
  };
  return signed(account, authorization, {
    domain: tokenDomain(signing),
    types: {
      TransferWithAuthorization: typesOf(
        'address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce',
      ),
    },
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  });
}

/** Signs an EIP-2612 permit; `count` is the number of the owner's earlier permits for the token. */
export async function signErc2612(signing: Signing, count: bigint): Promise<Signed> {
  const account = privateKeyToAccount(signing.key);
  const owner = signing.from ?? account.address;
  const authorization = {
    owner,
    spender: signing.to,
    value: signing.value,
    deadline: signing.until ?? inAnHour(),
  };
  return signed(account, authorization, {
    domain: tokenDomain(signing),
    types: {
      Permit: typesOf('address owner, address spender, uint256 value, uint256 nonce, uint256 deadline'),
    },
    primaryType: 'Permit',
    message: { ...authorization, nonce: count },
  });
}

/** Signs a Permit2 transfer. */
export async function signPermit2(signing: Signing): Promise<Signed> {
  const account = privateKeyToAccount(signing.key);
  const { token, value: amount, to: spender, chainId } = signing;
  const nonce = BigInt(signing.nonce ?? newNonce());
  const deadline = signing.until ?? inAnHour();
  const owner = signing.from ?? account.address;
  return signed(
    account,
    { owner, spender, token, amount, nonce, deadline },
    {
      domain: { name: 'Permit2', chainId, verifyingContract: PERMIT2 },
      types: {
        PermitTransferFrom: typesOf(
          'TokenPermissions permitted, address spender, uint256 nonce, uint256 deadline',
        ),
        TokenPermissions: typesOf('address token, uint256 amount'),
      },
      primaryType: 'PermitTransferFrom',
      message: { permitted: { token, amount }, spender, nonce, deadline },
    },
  );
}

/** Signs a Permit3 with one permit. */
export async function signPermit3(signing: Signing): Promise<Signed> {
  const account = privateKeyToAccount(signing.key);
  const { token, value: amount, to: spender, chainId } = signing;
  if (!isHex(token) || !isHex(spender)) throw new Error(`expected EVM addresses, found ${token}, ${spender}`);
  const owner = signing.from ?? account.address;
  const salt = signing.nonce ?? newNonce();
  const times = {
    deadline: Number(signing.until ?? inAnHour()),
    timestamp: Math.floor(Date.now() / 1000) - 5,
  };
  const permits = [{ chainId: BigInt(chainId), token, amount, spender }];
  const tuples = parseAbiParameters('(uint256 chainId, address token, uint256 amount, address spender)[]');
  return signed(
    account,
    { owner, salt, ...times, permits: [{ chainId, token, amount, spender }] },
    {
      domain: { name: 'Permit3', version: '1', chainId: 1, verifyingContract: PERMIT3 },
      types: {
        Permit3: typesOf(
          'address owner, bytes32 salt, uint48 deadline, uint48 timestamp, bytes32 permitHash',
        ),
      },
      primaryType: 'Permit3',
      message: { owner, salt, ...times, permitHash: keccak256(encodeAbiParameters(tuples, [permits])) },
    },
  );
}

async function signed(
  account: PrivateKeyAccount,
  authorization: Record<string, unknown>,
  data: TypedDataDefinition,
): Promise<Signed> {
  return { authorization: wire(authorization), signature: await account.signTypedData(data) };
}

function wire(authorization: Record<string, unknown>): Record<string, unknown> {
  return JSON.parse(
    JSON.stringify(authorization, (_key, value) => (typeof value === 'bigint' ? value.toString() : value)),
  );
}

/** `address from, uint256 value` as the members of a type. */
function typesOf(members: string): { name: string; type: string }[] {
  return members.split(', ').map((part) => {
    const [type = '', name = ''] = part.split(' ');
    return { name, type };
  });
}

function tokenDomain({ chainId, token }: Signing): TypedDataDefinition['domain'] {
  if (!isHex(token)) throw new Error(`expected the token of an EVM chain, found ${token}`);
  return { name: 'USD Coin', version: '2', chainId, verifyingContract: token };
}
