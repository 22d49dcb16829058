import { spawnSync } from 'node:child_process';
import { chown, copyFile, mkdir, mkdtemp, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { eventually } from '../support/eventually.ts';
import { SandboxProcess } from '../support/sandbox-process.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';
import { buildImage, containerCommand, mountReadOnly } from './build.ts';

// Executes the steps of the Dockerfile without a container engine, and runs the result as compose.yaml does.
//
//   node test/image/run.ts --base FOLDER
//
// FOLDER is the root of a system that represents the image that the Dockerfile names: Debian, with the Node and npm of that tag
// in /usr/local. It is not written to. Needs root (mounts, in a namespace of their own) and the network that the steps need.

const { values } = parseArgs({ options: { base: { type: 'string' }, work: { type: 'string' } } });
if (values.base === undefined) throw new Error('found no --base, expected the root of the base image');

if (values.work === undefined) {
  const work = await mkdtemp(join(tmpdir(), 'intentwatch-image-'));
  const again = [process.execPath, import.meta.filename, '--base', resolve(values.base), '--work', work];
  const { status } = spawnSync('unshare', ['--mount', '--propagation=private', ...again], {
    stdio: 'inherit',
  });
  process.exitCode = status ?? 1;
  // Empty: the mounts went with the namespace.
  await rmdir(work);
} else {
  const cleanUps: (() => Promise<void>)[] = [];
  try {
    await run({ base: values.base, work: values.work }, new Stage((cleanUp) => cleanUps.push(cleanUp)));
    process.stdout.write('the image works\n');
  } finally {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

async function run({ base, work }: { base: string; work: string }, stage: Stage): Promise<void> {
  // The upper layer of an overlay cannot itself be an overlay.
  spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', work]);
  const context = resolve(import.meta.dirname, '../..');
  const image = await buildImage({ context, base, work });
  const [uid] = image.user.split(':');
  if (uid !== '65534') throw new Error(`found user ${image.user}, expected 65534 (nobody)`);

  const volume = { path: '/var/lib/intentwatch', folder: join(work, 'volume') };
  await mkdir(volume.folder);
  await chown(volume.folder, Number(uid), Number(uid));
  const configInside = join(image.root, 'etc/intentwatch/intentwatch.yaml');
  await writeFile(configInside, '');

  const sandboxFlags = ['--port=0', '--control-port=0', '--transfers-per-second=3', '--time-scale=20'];
  const command = (args: readonly string[]) => containerCommand(image, [...image.entrypoint, ...args]);
  const receiver = await stage.receiver();
  const sandbox = await SandboxProcess.of(await stage.command(command(['sandbox', ...sandboxFlags])));
  const { wallets, quotes } = await sandbox.subjects();
  const config = await stage.config({
    upstreamUrl: sandbox.url,
    dataDir: volume.path,
    receiver,
    subscriptions: [{ name: 'treasury', wallets, quotes, receivers: [RECEIVER_NAME] }],
  });
  await copyFile(config, configInside);
  await mountReadOnly(image, volume);

  const touch = await stage.command(containerCommand(image, ['touch', '/opt/intentwatch/here']));
  if ((await touch.ending()).code === 0) throw new Error('the root folder is not read-only');
  const check = await stage.command(command(['check']));
  process.stdout.write(`check: ${(await check.ending()).code} ${check.output()}\n`);

  const daemon = await stage.command(command(['start', '--config', '/etc/intentwatch/intentwatch.yaml']));
  await daemon.line(/"msg":"daemon.started"/);
  await eventually('a webhook', () => receiver.received.length > 0);
  process.stdout.write(
    `webhook: ${receiver.received[0]?.event.type}, verified: ${receiver.received[0]?.verified}\n`,
  );
  const { code } = await daemon.end('SIGTERM');
  if (code !== 0 || receiver.received[0]?.verified !== true) throw new Error(`ended with ${code}`);
}
