import { spawnSync } from 'node:child_process';

/**
 * Whether a tool that tests need is on this machine, and how the name of a test says that it is skipped without it. On a
 * machine for tests alone (`CI` is set) nothing is skipped but what is optional: the test runs, and fails.
 */
export function installed(tool: string, { isOptional = false } = {}): { skip: boolean; note: string } {
  const mayBeMissing = isOptional || !process.env.CI;
  const skip = mayBeMissing && spawnSync(tool, ['--version']).status !== 0;
  return { skip, note: skip ? ` (skipped: ${tool} is not installed)` : '' };
}
