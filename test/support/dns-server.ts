import { createSocket, type Socket } from 'node:dgram';
import { isIP } from 'node:net';

const TYPES: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' };
/** A question for the addresses of a name, in lower case and without a dot at its end. */
export type DnsQuestion = { name: string; type: 'A' | 'AAAA' };

/** Addresses of the requested type (none: the name has no such address), or another answer; 'nothing' never answers. */
export type DnsAnswer = readonly string[] | 'no such name' | 'server failure' | 'nothing';

/** A real name server over UDP on loopback that answers as the test decides, and records the questions. */
export class DnsServer {
  readonly #socket: Socket = createSocket('udp4');
  readonly requests: DnsQuestion[] = [];
  /** The time for which an answer may be reused; with 0, each connection resolves again. */
  ttlSeconds = 60;
  answer: (question: DnsQuestion) => DnsAnswer;

  constructor(answer: (question: DnsQuestion) => DnsAnswer) {
    this.answer = answer;
    this.#socket.on('message', (query, from) => {
      const reply = this.#reply(query);
      if (reply !== null) this.#socket.send(reply, from.port, from.address);
    });
  }

  /** Listens; port 0 is a free one. The system's own resolver knows no other port than 53. */
  async start({ address = '127.0.0.1', port = 0 } = {}): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#socket.once('error', reject);
      this.#socket.bind(port, address, () => resolve());
    });
  }

  get nameServer(): string {
    const { address, port } = this.#socket.address();
    return port === 53 ? address : `[${address}]:${port}`;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#socket.close(() => resolve()));
  }

  #reply(query: Buffer): Buffer | null {
    const { name, end } = readName(query);
    const type = TYPES[query.readUInt16BE(end)];
    const answer = type === undefined ? [] : this.#answer({ name, type });
    if (answer === 'nothing') return null;
    const records =
      typeof answer === 'string' ? [] : answer.map((address) => record(address, this.ttlSeconds));
    const header = Buffer.from(query.subarray(0, 12));
    const code = answer === 'no such name' ? 3 : answer === 'server failure' ? 2 : 0;
    // An answer, recursion desired and available.
    header.writeUInt16BE(0x8180 | code, 2);
    header.writeUInt16BE(records.length, 6);
    header.writeUInt32BE(0, 8);
    return Buffer.concat([header, query.subarray(12, end + 4), ...records]);
  }

  #answer(question: DnsQuestion): DnsAnswer {
    this.requests.push(question);
    return this.answer(question);
  }
}

function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

/** A resource record; a pointer represents the name of the question. */
function record(address: string, ttlSeconds: number): Buffer {
  const data = isIP(address) === 4 ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(isIP(address) === 4 ? 1 : 28, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttlSeconds, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function ipv6Bytes(address: string): Buffer {
  const [start = '', rest] = address.split('::');
  const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [before, after] = [groupsOf(start), groupsOf(rest ?? '')];
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  const groups = rest === undefined ? before : [...before, ...zeros, ...after];
  return Buffer.concat(groups.map((group) => Buffer.from(group.padStart(4, '0'), 'hex')));
}
