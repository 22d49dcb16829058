import { parentPort, workerData } from 'node:worker_threads';
import { readConfigFile } from './reading.ts';
import { answerOf, type ThreadTask } from './reading-thread.ts';

// The program of a thread: it reads one config that was read before, and ends.
const { file, env }: ThreadTask = workerData;
parentPort?.postMessage(answerOf(await readConfigFile(file, { env, isAgain: true })));
