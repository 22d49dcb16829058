import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { loggingConfig } from '../support/logging-config.ts';
import { opening } from '../support/opening.ts';
import { Program } from '../support/program.ts';

const open = opening();

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;

test('log lines follow the config, and their level holds from a reload on', async () => {
  const { file, port, write } = await loggingConfig(open.later);
  await write({ format: 'pretty', level: 'warn' });
  const text = await readFile(file, 'utf8');
  const program = await Program.start(MAIN, ['start', '--config', file]);
  open.later(() => program.end('SIGKILL'));
  await eventually('the daemon is ready', async () =>
    fetch(`http://127.0.0.1:${port}/readyz`)
      .then(({ ok }) => ok)
      .catch(() => false),
  );
  await writeFile(file, `${text}nonsense: true\n`);
  await program.line(/ERROR: config\.reload_failed/);
  expect(program.stdout.join('\n')).not.toContain('INFO');
  await writeFile(file, text.replace('level: warn', 'level: info'));
  await program.line(/INFO: config\.reloaded/);
  await writeFile(file, text.replace('format: pretty', 'format: json'));
  await program.line(/log\.format: found another value than the daemon was started with/);
});

test('log lines that cannot be written end no daemon', async () => {
  const { file } = await loggingConfig(open.later);
  const stderrFile = `${file}.stderr`;
  const line = `exec ${process.execPath} ${MAIN} start --config ${file} > /dev/full 2> ${stderrFile}`;
  const daemon = spawn('sh', ['-c', line]);
  open.later(async () => daemon.kill('SIGKILL'));
  const reported = () => readFile(stderrFile, 'utf8').catch(() => '');
  await eventually('it is logged', async () =>
    (await reported()).includes('log lines cannot be written (ENOSPC)'),
  );
  const ended = once(daemon, 'exit');
  daemon.kill('SIGTERM');
  expect((await ended)[0]).toBe(0);
  expect(await reported()).toBe('intentwatch: log lines cannot be written (ENOSPC); they wait\n');
});
