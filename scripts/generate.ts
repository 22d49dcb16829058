import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { generateAnswerFiles } from './generate/answers.ts';
import { generateApiFiles } from './generate/api.ts';
import { generateCommandFiles } from './generate/commands.ts';
import { generateConfigFiles } from './generate/config.ts';
import { generateConformanceFiles } from './generate/conformance.ts';
import { generateConsumerFiles } from './generate/consumer.ts';
import { generateContractFiles } from './generate/contracts.ts';
import { generateEventFiles } from './generate/events.ts';
import { generateLimitFiles } from './generate/limits.ts';
import { generateMetricsFiles } from './generate/metrics.ts';
import { generatePerformanceFiles } from './generate/performance.ts';
import { generateScriptFiles } from './generate/scripts.ts';
import { generateVectorFiles } from './generate/vectors.ts';

const root = resolve(import.meta.dirname, '..');

/** A generated file: `path` is absolute, `name` the path within the repository. */
export type GeneratedFile = { path: string; name: string; content: string };

/** Generates every file in memory; nothing is written. Throws when two generators claim one file. */
export async function generatedFiles(): Promise<GeneratedFile[]> {
  const groups = await Promise.all([
    generateAnswerFiles(),
    generateApiFiles(),
    generateCommandFiles(),
    generateConfigFiles(),
    generateConformanceFiles(),
    generateConsumerFiles(),
    generateContractFiles(),
    generateEventFiles(),
    generateLimitFiles(),
    generateMetricsFiles(),
    generatePerformanceFiles(),
    generateScriptFiles(),
    generateVectorFiles(),
  ]);
  const files = groups.flat().map(({ path, content }) => {
    const absolute = resolve(root, path);
    return { path: absolute, name: relative(root, absolute), content };
  });
  const names = files.map((file) => file.name).sort();
  const twice = names.find((name, index) => name === names[index + 1]);
  if (twice !== undefined) throw new Error(`two generators write ${twice}; expected one`);
  return files;
}

if (import.meta.main) {
  for (const { path, name, content } of await generatedFiles()) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    console.log(`wrote ${name}`);
  }
}
