import { FolderInUse, FolderLock } from '../../src/store/embedded-files.ts';

// Takes the lock of a folder and holds it until it is ended; prints `held`, or prints `in use` and ends.

try {
  await FolderLock.take(process.argv[2] ?? '');
  process.stdout.write('held\n');
  setInterval(() => undefined, 60_000);
} catch (error) {
  if (!(error instanceof FolderInUse)) throw error;
  process.stdout.write('in use\n');
}
