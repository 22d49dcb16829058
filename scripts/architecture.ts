import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const FOLDER = resolve(import.meta.dirname, '..');

/**
 * A step of a flow: its file, which may have one `*`, and the file of the type it implements (null: a step before imports
 * it).
 */
export type FlowStep = { path: string; behind: string | null };

/** A flow of `docs/architecture.md`. Each part begins with a task that the daemon starts on its own. */
export type Flow = { title: string; steps: readonly (readonly FlowStep[])[] };

const STEP = /^\d+\. `([^`]+)`(?: \(behind `([^`]+)`\))?/;

/** Reads the flows of the page: the numbered lists of the section "Flows", by heading. */
export function readFlows(page: string): Flow[] {
  const [, section = ''] = /^## Flows$([\s\S]*?)^## /m.exec(page) ?? [];
  return section
    .split(/^### /m)
    .slice(1)
    .map((text) => {
      const [title = '', ...lines] = text.split('\n');
      const steps: FlowStep[][] = [];
      for (const line of lines) {
        const [, path, behind = null] = STEP.exec(line) ?? [];
        if (path === undefined) continue;
        if (line.startsWith('1. ')) steps.push([]);
        steps.at(-1)?.push({ path, behind });
      }
      return { title, steps };
    });
}

/** Number of different files on a flow. */
export function filesOn({ steps }: Flow): number {
  return new Set(steps.flat().map(({ path }) => path)).size;
}

/** The flows of this repository. */
export function flows(): Flow[] {
  return readFlows(readFileSync(resolve(FOLDER, 'docs/architecture.md'), 'utf8'));
}
