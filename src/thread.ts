import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { withTimeout } from './with-timeout.ts';

/** Made of this file's own kind: TypeScript in a clone, JavaScript in the package. */
const PROGRAM = new URL(`./thread-program${extname(import.meta.filename)}`, import.meta.url);

/** A thread that did not answer: it took too long, or more memory than there is. */
export class ThreadError extends Error {
  override readonly name = 'ThreadError';
}

/**
 * A thread that does one task after the other with the function `work` of a module, given as its `import.meta.url`. It
 * begins with the first task. The end of the process does not wait for it. A task that fails ends it; the next task begins
 * it anew.
 */
export class Thread<Task, Answer> {
  readonly #module: string;
  readonly #mostMs: number;
  #worker: Worker | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #closings = 0;

  /** `mostMs`: how long one task may take. */
  constructor(options: { module: string; mostMs: number }) {
    this.#module = options.module;
    this.#mostMs = options.mostMs;
  }

  /** Resolves with what `work` makes of a task. Throws a ThreadError, or what `work` throws. */
  run(task: Task): Promise<Answer> {
    const closings = this.#closings;
    const done = this.#last.then(() => {
      if (closings !== this.#closings) throw new Error('the thread was closed');
      return this.#run(task);
    });
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #run(task: Task): Promise<Answer> {
    this.#worker ??= this.#begin();
    try {
      const answer = await withTimeout(answerTo(this.#worker, task), this.#mostMs);
      if (answer === null) throw new ThreadError(`is not read within ${this.#mostMs / 1_000} s`);
      return answer.value as Answer;
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  #begin(): Worker {
    const worker = new Worker(PROGRAM, { workerData: { module: this.#module } });
    worker.unref();
    // One that ends by itself between two tasks harms nobody: the next task begins it anew.
    worker.on('error', () => undefined);
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = null;
    });
    return worker;
  }

  /** Ends the thread. The task under way and those that wait fail; one that comes later begins it anew. */
  close(): void {
    this.#closings += 1;
    this.#end();
  }

  #end(): void {
    void this.#worker?.terminate();
    this.#worker = null;
  }
}

function answerTo(worker: Worker, task: unknown): Promise<{ value: unknown }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ value: unknown }>();
  const onMessage = (value: unknown): void => resolve({ value });
  const onError = (error: unknown): void => {
    const isMemory = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
    reject(isMemory ? new ThreadError('takes more memory to be read than there is') : error);
  };
  const onExit = (code: number): void => reject(new Error(`the thread ended with ${code}`));
  // Before anything listens: it throws for a task that cannot be copied.
  worker.postMessage(task);
  worker.once('message', onMessage).once('error', onError).once('exit', onExit);
  return promise.finally(() => worker.off('message', onMessage).off('error', onError).off('exit', onExit));
}
