import { join } from 'node:path';
import { z } from 'zod';
import { Program } from '../../test/support/program.ts';

const CAME = z.array(z.tuple([z.string(), z.number(), z.string()]));

/** A delivered event: its id, the time (Unix ms), and its subject. */
export type Arrival = z.infer<typeof CAME>[number];

/** A program of this folder that prints its address. */
export class Endpoint {
  readonly #program: Program;
  readonly url: string;

  private constructor(program: Program, port: string) {
    this.#program = program;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(file: 'receiver.ts' | 'upstream.ts'): Promise<Endpoint> {
    const program = await Program.start(join(import.meta.dirname, file), []);
    const [, port = ''] = await program.line(/listening on (\d+)/);
    return new Endpoint(program, port);
  }

  async request(path: string): Promise<unknown> {
    return (await fetch(`${this.url}${path}`)).json();
  }

  async number(path: string): Promise<number> {
    return z.number().parse(await this.request(path));
  }

  /** For the receiver: its requests, oldest first. */
  async came(): Promise<Arrival[]> {
    return CAME.parse(await this.request('/came'));
  }

  async end(): Promise<void> {
    await this.#program.end('SIGKILL');
  }
}
