import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { codeOf } from './errors.ts';
import { withTimeout } from './with-timeout.ts';

/** The same file type as this one: TypeScript in a clone, JavaScript in the package. */
const PROGRAM = new URL(`./thread-program${extname(import.meta.filename)}`, import.meta.url);

/** A thread that did not answer: it took too long, or too much memory. */
export class ThreadError extends Error {
  override readonly name = 'ThreadError';
}

/**
 * A thread that runs one task after another with the function `work` of a module, given as its `import.meta.url`. It starts
 * with the first task. The end of the process does not wait for it. A failed task ends it; the next task starts it again.
 */
export class Thread<Task, Answer> {
  readonly #module: string;
  readonly #mostMs: number;
  #worker: Worker | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #closings = 0;

  /** `mostMs`: longest time of one task. */
  constructor(options: { module: string; mostMs: number }) {
    this.#module = options.module;
    this.#mostMs = options.mostMs;
  }

  /** Resolves with the result of `work`. Throws a ThreadError, or the error of `work`. */
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
    // A thread that ends between two tasks does no harm: the next task starts it again.
    worker.on('error', () => undefined);
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = null;
    });
    return worker;
  }

  /** Ends the thread. Running and waiting tasks fail; a later task starts it again. */
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
    const isMemory = codeOf(error) === 'ERR_WORKER_OUT_OF_MEMORY';
    reject(isMemory ? new ThreadError('takes more memory to be read than there is') : error);
  };
  const onExit = (code: number): void => reject(new Error(`the thread ended with ${code}`));
  // Before any listener is added: it throws for a task that cannot be copied.
  worker.postMessage(task);
  worker.once('message', onMessage).once('error', onError).once('exit', onExit);
  return promise.finally(() => worker.off('message', onMessage).off('error', onError).off('exit', onExit));
}
