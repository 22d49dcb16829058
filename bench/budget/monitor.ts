import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { scripts } from '../../src/store/scripts.ts';

/** A command of a client at a time (Unix ms), and the number of commands that it ran inside Redis, if it is a script. */
export type Command = { atMs: number; client: string; name: string; inside: number };

const LINE = /^\+(\d+\.\d+) \[\d+ (\S+)\] "([^"]*)"(?: "([^"]*)")?/;

/**
 * Records all commands that a Redis receives, by `MONITOR`: each script under its name, those of BullMQ under `bullmq`. It
 * reads line by line: the client library fails when commands arrive with the answer to `MONITOR`.
 */
export class Monitor {
  readonly commands: Command[] = [];
  readonly #socket: Socket;
  readonly #names = namesOfScripts();

  private constructor(socket: Socket) {
    this.#socket = socket;
    createInterface({ input: socket }).on('line', (line) => this.#note(line));
  }

  static async start(url: string): Promise<Monitor> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    const monitor = new Monitor(socket);
    socket.write('MONITOR\r\n');
    return monitor;
  }

  #note(line: string): void {
    const [, seconds, client, name = '', first = ''] = LINE.exec(line) ?? [];
    if (seconds === undefined || client === undefined) return;
    const last = this.commands.at(-1);
    if (client === 'lua') {
      if (last !== undefined) last.inside += 1;
      return;
    }
    const command = name.toLowerCase();
    const isScript = command === 'evalsha' || command === 'eval';
    const script = isScript ? (this.#names.get(first) ?? 'bullmq') : command;
    this.commands.push({ atMs: Number(seconds) * 1_000, client, name: script, inside: 0 });
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** SHA-1 of every script of the program -> its file name without the number of keys. */
function namesOfScripts(): Map<string, string> {
  const names = new Map<string, string>();
  const defining = {
    defineCommand: (command: string, { lua }: { lua: string }) =>
      names.set(createHash('sha1').update(lua).digest('hex'), command.replace(/^iw:|-\d+$/g, '')),
  };
  for (const { define } of Object.values(scripts)) Reflect.apply(define, undefined, [defining]);
  return names;
}
