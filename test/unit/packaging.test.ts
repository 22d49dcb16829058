import { access, readdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { links } from '../support/markdown.ts';

const ROOT = resolve(import.meta.dirname, '../..');

const COMPOSE = z.object({
  services: z.record(
    z.string(),
    z.object({ volumes: z.array(z.string()).default([]), profiles: z.array(z.string()).default([]) }),
  ),
});

const PROMETHEUS = z.object({
  scrape_configs: z.array(z.object({ job_name: z.string(), static_configs: z.unknown() })),
  rule_files: z.array(z.string()),
});

async function yamlFile<T>(file: string, schema: z.ZodType<T>): Promise<T> {
  return schema.parse(parse(await readFile(join(ROOT, file), 'utf8')));
}

test('compose.yaml mounts only files that are here, and the config that its user writes', async () => {
  const { services } = await yamlFile('compose.yaml', COMPOSE);
  const mounted = Object.values(services)
    .flatMap(({ volumes }) => volumes.map((volume) => volume.split(':')[0] ?? ''))
    .filter((path) => path.startsWith('./') && path !== './intentwatch.yaml');
  expect(mounted.length).toBeGreaterThan(3);
  for (const path of mounted) await expect(access(join(ROOT, path)), path).resolves.toBeUndefined();
});

test('compose.yaml starts Prometheus and Grafana only when they are requested', async () => {
  const { services } = await yamlFile('compose.yaml', COMPOSE);
  const always = Object.entries(services).filter(([, { profiles }]) => profiles.length === 0);
  expect(always.map(([name]) => name)).toEqual(['intentwatch', 'redis']);
});

test('the Prometheus of compose.yaml has the job and the rules of any other', async () => {
  const [composed, example] = await Promise.all([
    yamlFile('config/prometheus/compose.yml', PROMETHEUS),
    yamlFile('config/prometheus/scrape.yml', PROMETHEUS),
  ]);
  expect(composed.rule_files).toEqual(example.rule_files);
  expect(composed.scrape_configs.map((job) => job.job_name)).toEqual(
    example.scrape_configs.map((job) => job.job_name),
  );
});

test('the files that the container reads come into its build', async () => {
  const [dockerfile, ignored, packageJson] = await Promise.all(
    ['Dockerfile', '.dockerignore', 'package.json'].map((file) => readFile(join(ROOT, file), 'utf8')),
  );
  // The package's files, and those that make it.
  const { files } = z.object({ files: z.array(z.string()) }).parse(JSON.parse(packageJson ?? ''));
  const used = new Set((ignored ?? '').split('\n').map((line) => line.replace(/^!/, '')));
  const needed = [
    ...files.filter((file) => file !== 'dist' && !file.startsWith('!')),
    'src',
    'sandbox',
    'demo',
    'scripts',
    'tsconfig.json',
    'README.md',
  ];
  expect(needed.filter((file) => !used.has(file))).toEqual([]);
  for (const base of dockerfile?.match(/^FROM \S+/gm) ?? []) expect(base).toMatch(/:\d+\.\d+\.\d+-/);
});

test('pages of the package link to nothing that it lacks, except to tests', async () => {
  const { files } = z
    .object({ files: z.array(z.string()) })
    .parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')));
  const packed = [...files, 'README.md', 'LICENSE', 'test/'];
  const folders = ['docs', 'examples'];
  const listed = await Promise.all(folders.map((one) => readdir(join(ROOT, one), { recursive: true })));
  const pages = [
    ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md'],
    ...listed.flatMap((some, index) => some.map((file) => join(folders[index] ?? '', file))),
  ].filter((file) => file.endsWith('.md'));
  const missing: string[] = [];
  for (const page of pages) {
    for (const { path } of links(await readFile(join(ROOT, page), 'utf8'))) {
      const target = join(dirname(page), path);
      if (path !== '' && !packed.some((one) => target.startsWith(one))) missing.push(`${page}: ${path}`);
    }
  }
  expect(missing).toEqual([]);
});
