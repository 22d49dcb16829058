import { spawnSync } from 'node:child_process';
import { cp, mkdir, readFile } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import { type ImageStage, parseDockerfile, parseIgnoreFile } from './dockerfile.ts';

/** An image as a folder, and how a container of it starts. */
export type Image = {
  root: string;
  env: Record<string, string>;
  user: string;
  workdir: string;
  entrypoint: string[];
};

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Instructions that describe the image, or that an engine obeys. */
const METADATA_ONLY = new Set(['LABEL', 'EXPOSE', 'HEALTHCHECK', 'VOLUME', 'CMD', 'ARG']);

/**
 * Executes a Dockerfile, each stage in a root of its own over the same base root, which represents the image that `FROM` names.
 * Must run as root, in a mount namespace of its own.
 */
export async function buildImage(options: { context: string; base: string; work: string }): Promise<Image> {
  const { context, base, work } = options;
  const built = new Map<string, Image>();
  let last: Image | null = null;
  for (const [index, stage] of parseDockerfile(
    await readFile(join(context, 'Dockerfile'), 'utf8'),
  ).entries()) {
    const folder = join(work, `stage-${index}`);
    for (const part of ['upper', 'work', 'root']) await mkdir(join(folder, part), { recursive: true });
    const root = join(folder, 'root');
    sh([
      'mount',
      '-t',
      'overlay',
      'overlay',
      '-o',
      `lowerdir=${base},upperdir=${folder}/upper,workdir=${folder}/work`,
      root,
    ]);
    for (const name of ['proc', 'dev']) sh(['mount', '--rbind', `/${name}`, join(root, name)]);
    last = await buildStage(stage, { root, context, built });
    built.set(stage.name ?? String(index), last);
  }
  if (last === null) throw new Error('the Dockerfile has no stage');
  return last;
}

async function buildStage(
  stage: ImageStage,
  { root, context, built }: { root: string; context: string; built: ReadonlyMap<string, Image> },
): Promise<Image> {
  const image: Image = { root, env: { PATH }, user: '0:0', workdir: '/', entrypoint: [] };
  for (const { keyword, rest } of stage.instructions) {
    process.stdout.write(`${keyword} ${rest}\n`);
    if (METADATA_ONLY.has(keyword)) continue;
    switch (keyword) {
      case 'RUN':
        sh(containerCommand({ ...image, env: { HOME: '/root', ...image.env } }, ['sh', '-c', rest]));
        break;
      case 'COPY':
        await copy(rest.split(/\s+/), { image, context, built });
        break;
      case 'ENV': {
        const [name = '', ...value] = rest.split('=');
        image.env[name] = value.join('=').replaceAll(/\$(\w+)/g, (_, of: string) => image.env[of] ?? '');
        break;
      }
      case 'WORKDIR':
        image.workdir = rest;
        await mkdir(join(root, rest), { recursive: true });
        break;
      case 'USER':
        image.user = rest;
        break;
      case 'ENTRYPOINT':
        image.entrypoint = rest.match(/(?<=")[^",]+(?=")/g) ?? [];
        break;
      default:
        throw new Error(`found ${keyword}, which is not known here`);
    }
  }
  return image;
}

async function copy(
  words: readonly string[],
  { image, context, built }: { image: Image; context: string; built: ReadonlyMap<string, Image> },
): Promise<void> {
  const from = words[0]?.startsWith('--from=') ? words[0].slice('--from='.length) : null;
  const sources = words.slice(from === null ? 0 : 1, -1);
  const target = join(image.root, posix.resolve(image.workdir, words.at(-1) ?? '.'));
  const options = { recursive: true, verbatimSymlinks: true, preserveTimestamps: true };
  if (from !== null) {
    const stage = built.get(from);
    if (stage === undefined) throw new Error(`COPY --from=${from}: found no such stage`);
    for (const source of sources) await cp(join(stage.root, source), target, options);
    return;
  }
  const { names, isLeftOut } = parseIgnoreFile(await readFile(join(context, '.dockerignore'), 'utf8'));
  const filter = (path: string): boolean => !isLeftOut(basename(path));
  for (const name of sources[0] === '.' ? names : sources) {
    if (!names.includes(name)) throw new Error(`COPY ${name}: .dockerignore excludes it from the context`);
    await cp(join(context, name), join(target, name), { ...options, filter });
  }
}

/** The command that runs another in an image as its user: a user other than root has no capability. */
export function containerCommand(image: Image, args: readonly string[]): string[] {
  const [uid = '', gid = ''] = image.user.split(':');
  const drop = ['--clear-groups', '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'];
  const as = uid === '0' ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, ...drop];
  return ['chroot', image.root, ...as, 'env', '-i', '-C', image.workdir, ...pairs(image.env), ...args];
}

/** Makes a root read-only, with a tmpfs at /tmp and a folder of the host's for the volume. */
export async function mountReadOnly(image: Image, volume: { path: string; folder: string }): Promise<void> {
  sh(['mount', '--bind', image.root, image.root]);
  sh(['mount', '-o', 'remount,bind,ro', image.root]);
  sh(['mount', '-t', 'tmpfs', 'tmpfs', join(image.root, 'tmp')]);
  sh(['mount', '--bind', volume.folder, join(image.root, volume.path)]);
  for (const name of ['proc', 'dev']) sh(['mount', '--rbind', `/${name}`, join(image.root, name)]);
}

function pairs(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).map((pair) => pair.join('='));
}

function sh([command = '', ...args]: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status ?? error?.message}`);
}
