// The baseline of `npm run bench -- start`: a process that has loaded the clients of Redis, queues and HTTP, and waits; with
// an argument it ends.
import 'bullmq';
import 'ioredis';
import 'undici';

process.stdout.write('ready\n');
if (process.argv.length === 2) setInterval(() => undefined, 60_000);
