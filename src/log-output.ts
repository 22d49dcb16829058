import type { DestinationStream } from 'pino';

/** Where text goes for good before `write` returns. */
type Sink = { write(text: string): unknown };

/**
 * Has the log lines of one turn of the event loop leave together, before the next turn or the end of the process: a write
 * of its own for each costs a busy daemon as much as the deliveries that they tell of.
 */
export function gatheredLines(sink: Sink): DestinationStream {
  let lines = '';
  let isScheduled = false;
  const flush = (): void => {
    isScheduled = false;
    if (lines === '') return;
    const text = lines;
    lines = '';
    sink.write(text);
  };
  process.on('exit', flush);
  return {
    write: (line) => {
      lines += line;
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(flush);
    },
  };
}
