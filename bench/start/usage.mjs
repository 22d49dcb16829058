// Imported first into a command that is measured: writes its CPU time (ms) and its peak of memory (kB) to a file at its end.
import { appendFileSync } from 'node:fs';

process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  appendFileSync(process.env.USAGE_FILE, `${(userCPUTime + systemCPUTime) / 1_000} ${maxRSS}\n`);
});
