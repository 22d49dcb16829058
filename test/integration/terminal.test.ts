import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ADMIN_TOKEN, apiStage } from '../support/api-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { loggingConfig } from '../support/logging-config.ts';
import { opening } from '../support/opening.ts';
import { Program } from '../support/program.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const open = opening();

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;
const ESCAPE = '\u001b';

function shell(file: string, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...process.env, ...env }, encoding: 'utf8', timeout: 600_000 } as const;
    execFile(file, args, options, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${error.message}\n${stderr}`)),
    );
  });
}

function onTerminal(columns: number, line: string, env: Record<string, string> = {}): Promise<string> {
  return shell('script', ['-qec', `stty cols ${columns}; ${line}`, '/dev/null'], { TERM: 'xterm', ...env });
}

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'intentwatch-terminal-'));
  open.later(() => rm(made, { recursive: true, force: true, maxRetries: 5 }));
  return made;
}

async function stage() {
  const hooks = { backend: new Hook(), broken: new Hook(), operator: new Hook() };
  for (const hook of Object.values(hooks)) await open.started(hook);
  return apiStage(hooks, { later: open.later });
}

describe('completion in bash', () => {
  /** The completions of bash for the last of some words, with the script loaded as a user loads it. */
  async function offered(script: string, ...words: string[]): Promise<string[]> {
    const completion =
      'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _intentwatch; printf "%s\\n" "${COMPREPLY[@]}"';
    const out = await shell('bash', ['--norc', '-c', completion, script, 'intentwatch', ...words]);
    return out.split('\n').filter((word) => word !== '');
  }

  test('offers commands, their subcommands, flags, and the values of a flag', async () => {
    const program = await Program.start(MAIN, ['completion', 'bash']);
    expect(await program.ending()).toMatchObject({ code: 0 });
    const script = join(await folder(), 'completion');
    await writeFile(script, `${program.stdout.join('\n')}\n`);
    expect(await offered(script, 'rece')).toEqual(['receivers']);
    expect(await offered(script, 'receivers', 'r')).toEqual(['resume', 'remove', 'rotate']);
    expect(await offered(script, 'ls', '--url', 'http://127.0.0.1:9464', '--st')).toEqual(['--status']);
    expect(await offered(script, 'start', '--log-format', '')).toEqual(['json', 'pretty']);
    expect(await offered(script, 'check', '--config', script.slice(0, -3))).toEqual([script]);
    const complete = await shell('bash', ['--norc', '-c', 'source "$0"; complete -p intentwatch', script]);
    expect(complete).toBe('complete -o default -F _intentwatch intentwatch\n');
  });
});

describe('a terminal of 60 columns', () => {
  test('shows blocks of lines in place of a wide table, in colours; a pipe gets neither', async () => {
    const { url, setStatus, call } = await stage();
    setStatus(hashOf(1), 'filled');
    await eventually('the transfer is known', async () => {
      const { body } = await call({ path: '/subjects?status=filled' });
      return Array.isArray(body.subjects) && body.subjects.length === 1;
    });
    const env = { INTENTWATCH_URL: url, INTENTWATCH_TOKEN: ADMIN_TOKEN, NO_COLOR: '', TERM: 'xterm' };
    // Node gives no colours where CI is set.
    const line = `env -u CI ${process.execPath} ${MAIN} ls --status filled`;
    const shown = await onTerminal(60, line, env);
    expect(shown).toContain(`${ESCAPE}[`);
    const lines = stripVTControlCharacters(shown)
      .split(/\r?\n/)
      .map((one) => one.trimEnd());
    expect(lines).toContain(`SUBJECT        intent:${hashOf(1)}`);
    expect(lines).toContain('STATUS         filled');
    const piped = await onTerminal(60, `${line} | cat`, env);
    expect(piped).not.toContain(`${ESCAPE}[`);
    expect(piped).toMatch(/^SUBJECT +STATUS /m);
  });
});

test('log lines are for people on a terminal, and a daemon whose terminal goes ends as it should', async () => {
  const { file } = await loggingConfig(open.later);
  const ended = `${file}.ended`;
  // As a shell does whose terminal goes: it signals its jobs, and waits for them.
  const line = [
    `trap 'kill -HUP $daemon' HUP`,
    `${process.execPath} ${MAIN} start --config ${file} & daemon=$!`,
    `wait $daemon; wait $daemon; echo "code $?" > ${ended}`,
  ].join('\n');
  const terminal = spawn('script', ['-qfec', line, '/dev/null'], {
    env: { ...process.env, SHELL: '/bin/bash', TERM: 'xterm', NO_COLOR: '' },
  });
  open.later(async () => terminal.kill('SIGKILL'));
  let shown = '';
  terminal.stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString();
  });
  await eventually('the daemon has started', () => shown.includes('daemon.started'));
  expect(stripVTControlCharacters(shown)).toMatch(/^\[[\d:.]+\] INFO: server\.listening /m);
  terminal.kill('SIGKILL');
  const code = () => readFile(ended, 'utf8').catch(() => '');
  await eventually('the daemon has ended', async () => (await code()) !== '');
  expect(await code()).toBe('code 0\n');
});
