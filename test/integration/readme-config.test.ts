import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { generateEventFiles } from '../../scripts/generate/events.ts';
import { loadConfig } from '../../src/config/file/load.ts';

const root = resolve(import.meta.dirname, '../..');
const readme = await readFile(resolve(root, 'README.md'), 'utf8');

function blocks(text: string, fence: string): string[] {
  return [...text.matchAll(new RegExp(`\`\`\`${fence}\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, block = '']) => block,
  );
}

describe('the README', () => {
  test('shows a first config that loads, also with what Docker adds', async () => {
    const [first = '', docker = ''] = blocks(readme, 'yaml');
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-readme-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'intentwatch.yaml');
    const env = {
      UPSTREAM_API_KEY: 'key-1',
      WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
      REDIS_URL: 'redis://redis:6379',
    };
    await writeFile(file, first);
    const config = await loadConfig(file, env);
    expect(config.redis.url).toBeNull();
    expect(config.subscriptions[0]).toMatchObject({ name: 'treasury', overdueAfterMs: 900_000 });

    await writeFile(file, `${first}\n${docker}`);
    const inDocker = await loadConfig(file, env);
    expect(inDocker.redis.url?.reveal()).toBe(env.REDIS_URL);
    expect(inDocker.server).toMatchObject({ host: '0.0.0.0', port: 9464 });
  });

  test('shows the event as the catalogue has it', async () => {
    const files = await generateEventFiles();
    const example = files.find(({ path }) => path === 'docs/events/intent.filled.json');
    expect(blocks(readme, 'json')).toEqual([example?.content]);
  });
});

test.each([
  'README.md',
  'CHANGELOG.md',
  'docs/assumptions.md',
  'docs/configuration.md',
  'docs/events.md',
  'docs/operations.md',
  'docs/sandbox.md',
])('%s links to nothing that is not there', async (page) => {
  const text = await readFile(resolve(root, page), 'utf8');
  const targets = [...text.matchAll(/\]\(([^)#\s]+)(#[^)\s]*)?\)/g)].map(([, target = '']) => target);
  for (const target of targets.filter((one) => !one.startsWith('https://'))) {
    await expect(access(resolve(root, dirname(page), target)), target).resolves.toBeUndefined();
  }
});
