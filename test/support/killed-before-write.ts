import { existsSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';

// Loaded before a program (`--import …?text=…&marker=…`), it kills the program before it sends a text for the first time:
// earlier writes of the program have reached the other side, and the text has not. The marker file records the kill.

const { searchParams } = new URL(import.meta.url);
const text = searchParams.get('text') ?? '';
const marker = searchParams.get('marker') ?? '';

Socket.prototype.write = new Proxy(Socket.prototype.write, {
  apply(write, socket, args: unknown[]) {
    if (String(args[0]).includes(text) && !existsSync(marker)) {
      writeFileSync(marker, '');
      process.kill(process.pid, 'SIGKILL');
    }
    return Reflect.apply(write, socket, args);
  },
});
