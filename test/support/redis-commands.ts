import { connect } from 'node:net';

/** A command as `MONITOR` shows it: `source` is the address of the connection, or `lua` for one of a script. */
export type ShownCommand = { source: string; name: string; line: string };

const LINE = /^\+[\d.]+ \[\d+ (\S+)\] "([^"]*)"/;

/** Records all commands that a Redis gets, on a connection of its own. `until` resolves when one of them has a text. */
export async function shownCommands(
  redisUrl: string,
): Promise<{ commands: ShownCommand[]; until: (text: string) => Promise<void>; close: () => void }> {
  const { hostname, port } = new URL(redisUrl);
  const socket = connect(Number(port), hostname);
  socket.setEncoding('utf8');
  const commands: ShownCommand[] = [];
  let rest = '';
  let notify = (): void => undefined;
  socket.on('data', (text: string) => {
    const lines = `${rest}${text}`.split('\r\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, source, name] = LINE.exec(line) ?? [];
      if (source !== undefined && name !== undefined)
        commands.push({ source, name: name.toLowerCase(), line });
    }
    notify();
  });
  const begun = Promise.withResolvers<void>();
  socket.once('data', () => begun.resolve());
  socket.once('error', (error) => begun.reject(error));
  socket.write('MONITOR\r\n');
  await begun.promise;
  return {
    commands,
    until: (text) =>
      new Promise((resolve) => {
        notify = () => {
          if (commands.some(({ line }) => line.includes(text))) resolve();
        };
        notify();
      }),
    close: () => void socket.destroy(),
  };
}
