import { parentPort, workerData } from 'node:worker_threads';

// The program of every thread (thread.ts): it answers each message with what the function of its module makes of it.
const { module }: { module: string } = workerData;
const { work }: { work: (task: unknown) => unknown } = await import(module);
parentPort?.on('message', async (task) => parentPort?.postMessage(await work(task)));
