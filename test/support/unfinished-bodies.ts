import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';
import { Stage } from './stage.ts';

export const MIB = 1_024 * 1_024;

async function serve(): Promise<{ url: string; port: number; rssMiB: () => Promise<number> }> {
  const stage = new Stage(onTestFinished);
  const program = await stage.program(join(import.meta.dirname, 'server-program.ts'), [], {
    SERVER_TOKEN: 'a-token-of-some-length',
  });
  await eventually('the server listens', () => program.stdout.length > 0);
  const url = program.stdout[0] ?? '';
  const rssMiB = async (): Promise<number> => {
    const status = await readFile(`/proc/${program.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
  };
  return { url, port: Number(new URL(url).port), rssMiB };
}

/** A connection, until the test has ended, that sends some bytes; `isClosed` is true once the other side has closed it. */
export function openTo(
  port: number,
  ...chunks: (string | Buffer)[]
): { socket: Socket; isClosed: () => boolean; answer: () => string } {
  const socket = connect(port, '127.0.0.1');
  let closed = false;
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
  });
  for (const one of chunks) socket.write(one);
  onTestFinished(() => void socket.destroy());
  return { socket, isClosed: () => closed, answer: () => answer };
}

/** Sends 600 bodies of 1 MiB without their last byte: the server must end them all, with less than twice its memory. */
export async function expectUnfinishedBodiesEnd(head: string): Promise<void> {
  const { url, port, rssMiB } = await serve();
  await (await fetch(`${url}/metrics`)).text();
  const before = await rssMiB();
  const body = Buffer.alloc(MIB - 1, 'x');
  const all = Array.from({ length: 600 }, () => openTo(port, head, body));
  await eventually('every connection is ended', () => all.every((one) => one.isClosed()));
  expect((await rssMiB()) / before).toBeLessThan(2);
  expect((await fetch(`${url}/metrics`)).status).toBe(200);
}
