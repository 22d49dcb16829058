import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { eventually } from './eventually.ts';
import type { StartProgram } from './program.ts';

/** A webhook as the receiver's process got it; `answeredMs` is null while, or because, it was not answered. */
export type Received = {
  id: string;
  event: RenderedEvent;
  verified: boolean;
  receivedMs: number;
  answeredMs: number | null;
};

const LINE = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('listening'), url: z.url() }),
  z.object({
    kind: z.literal('received'),
    id: z.string(),
    atMs: z.number(),
    verified: z.boolean(),
    event: z.custom<RenderedEvent>(),
  }),
  z.object({ kind: z.literal('answered'), id: z.string(), atMs: z.number() }),
]);

/** A receiver in a process of its own, and its webhooks. */
export class ReceiverProcess {
  readonly secret: string;
  readonly received: Received[] = [];
  #url = '';

  private constructor(secret: string) {
    this.secret = secret;
  }

  /** Starts the receiver: one that answers 204 after `delayMs`, never answers, or answers 500. */
  static async start(
    start: StartProgram,
    options: { mode?: 'answer' | 'hang' | 'fail'; delayMs?: number },
  ): Promise<ReceiverProcess> {
    const receiver = new ReceiverProcess(`whsec_${randomBytes(32).toString('base64')}`);
    const program = await start(join(import.meta.dirname, 'receiver-program.ts'), [], {
      RECEIVER_SECRET: receiver.secret,
      RECEIVER_MODE: options.mode ?? 'answer',
      RECEIVER_DELAY_MS: String(options.delayMs ?? 0),
    });
    program.onLine((line) => receiver.#take(line));
    await eventually('the receiver listens', () => receiver.#url !== '');
    return receiver;
  }

  get url(): string {
    return this.#url;
  }

  #take(text: string): void {
    const line = LINE.parse(JSON.parse(text));
    switch (line.kind) {
      case 'listening':
        this.#url = line.url;
        break;
      case 'received': {
        const { id, event, verified, atMs } = line;
        this.received.push({ id, event, verified, receivedMs: atMs, answeredMs: null });
        break;
      }
      case 'answered': {
        const answered = this.received.find(({ id, answeredMs }) => id === line.id && answeredMs === null);
        if (answered !== undefined) answered.answeredMs = line.atMs;
        break;
      }
      default:
        line satisfies never;
    }
  }

  counts(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { id } of this.received) counts.set(id, (counts.get(id) ?? 0) + 1);
    return counts;
  }

  /** The events so far, each once, as first received. */
  events(): RenderedEvent[] {
    return [...new Map(this.received.toReversed().map(({ id, event }) => [id, event])).values()].reverse();
  }
}
