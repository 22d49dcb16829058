import { parentPort, workerData } from 'node:worker_threads';

// The program of every thread (thread.ts): it answers each message with the result of its module's function.
const { module }: { module: string } = workerData;
const { work }: { work: (task: unknown) => unknown } = await import(module);
parentPort?.on('message', async (task) => parentPort?.postMessage(await work(task)));
