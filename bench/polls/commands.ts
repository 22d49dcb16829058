import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';

/** Number of commands that a Redis received: from clients, and inside scripts. */
export type Counted = { client: number; inside: number };

/** Counts a server's commands by MONITOR, line by line: the client library fails when commands arrive with MONITOR's answer. */
export async function countCommands(url: string, forMs: number): Promise<Counted> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const counted: Counted = { client: 0, inside: 0 };
  createInterface({ input: socket }).on('line', (line) => {
    const [, source] = /^\+[\d.]+ \[\d+ (\S+)\] /.exec(line) ?? [];
    if (source === 'lua') counted.inside++;
    else if (source !== undefined) counted.client++;
  });
  socket.write('MONITOR\r\n');
  await wait(forMs);
  socket.destroy();
  return counted;
}
