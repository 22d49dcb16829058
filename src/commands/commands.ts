import type { Command } from 'commander';
import { interrupted } from '../exit.ts';

/** Purpose of a command, in the order in which they are listed. */
export type CommandGroup = 'run' | 'see' | 'act' | 'data' | 'upstream';

/** A command that is loaded when it is called: the daemon does not need the sandbox. */
type Listed = { group: CommandGroup; load: () => Promise<Command> };

export const COMMANDS: Readonly<Record<string, Listed>> = {
  start: { group: 'run', load: async () => (await import('./start.ts')).startCommand() },
  check: { group: 'run', load: async () => (await import('./check.ts')).checkCommand() },
  keygen: { group: 'run', load: async () => (await import('./setup.ts')).keygenCommand() },
  'postgres-table': {
    group: 'run',
    load: async () => (await import('./setup.ts')).postgresTableCommand(),
  },
  test: { group: 'run', load: async () => (await import('./check.ts')).testCommand() },
  sandbox: {
    group: 'run',
    load: async () => (await import('../../sandbox/command.ts')).sandboxCommand(interrupted),
  },
  demo: {
    group: 'run',
    load: async () => (await import('../../demo/command.ts')).demoCommand(),
  },
  completion: {
    group: 'run',
    load: async () => (await import('./setup.ts')).completionCommand(loadCommands),
  },
  ls: { group: 'see', load: async () => (await import('./subjects.ts')).listCommand() },
  show: { group: 'see', load: async () => (await import('./show.ts')).showCommand() },
  events: { group: 'see', load: async () => (await import('./events.ts')).eventsCommand() },
  reconcile: { group: 'see', load: async () => (await import('./reconcile.ts')).reconcileCommand() },
  undelivered: { group: 'see', load: async () => (await import('./undelivered.ts')).undeliveredCommand() },
  suspended: { group: 'see', load: async () => (await import('./suspended.ts')).suspendedCommand() },
  track: { group: 'act', load: async () => (await import('./subjects.ts')).trackCommand() },
  untrack: { group: 'act', load: async () => (await import('./subjects.ts')).untrackCommand() },
  remove: { group: 'act', load: async () => (await import('./suspended.ts')).removeCommand() },
  recheck: { group: 'act', load: async () => (await import('./subjects.ts')).recheckCommand() },
  resend: { group: 'act', load: async () => (await import('./resend.ts')).resendCommand() },
  retry: { group: 'act', load: async () => (await import('./undelivered.ts')).retryCommand() },
  reload: { group: 'act', load: async () => (await import('./reload.ts')).reloadCommand() },
  receivers: { group: 'act', load: async () => (await import('./receivers.ts')).receiversCommand() },
  listen: { group: 'act', load: async () => (await import('./listen.ts')).listenCommand() },
  quarantine: { group: 'data', load: async () => (await import('./learned.ts')).quarantineCommand() },
  learned: { group: 'data', load: async () => (await import('./learned.ts')).learnedCommand() },
  status: { group: 'upstream', load: async () => (await import('./status.ts')).statusCommand() },
  quote: { group: 'upstream', load: async () => (await import('./quote.ts')).quoteCommand() },
  probe: { group: 'upstream', load: async () => (await import('./probe.ts')).probeCommand() },
  verify: { group: 'upstream', load: async () => (await import('./verify.ts')).verifyCommand() },
  'verify-quote': {
    group: 'upstream',
    load: async () => (await import('./verify-quote.ts')).verifyQuoteCommand(),
  },
};

/** All commands, in the order in which they are listed. */
export async function loadCommands(): Promise<Command[]> {
  return Promise.all(Object.values(COMMANDS).map(({ load }) => load()));
}
