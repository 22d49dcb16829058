import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { OPEN_POINTS, type Point, SEEN_POINTS } from '../../test/conformance/suite/deployments.ts';
import { materialSchema } from '../../test/conformance/suite/material.ts';
import { OUTLINE, placeOf } from '../../test/conformance/suite/outline.ts';
import { nameOf, type Rule } from '../../test/conformance/suite/rule.ts';
import { RULES } from '../../test/conformance/suite/suite.ts';
import { UNOBSERVABLE } from '../../test/conformance/suite/unobservable.ts';

/** Number of observations of each rule, by the rule's id. */
type Shown = Readonly<Record<string, number>>;

/** Generates the page of the conformance suite. Paths are relative to the repository. */
export async function generateConformanceFiles(): Promise<{ path: string; content: string }[]> {
  const text = await readFile(
    resolve(import.meta.dirname, '../../test/conformance/suite/shown.json'),
    'utf8',
  );
  const shown = z.record(z.string(), z.int()).parse(JSON.parse(text));
  return [{ path: 'docs/conformance.md', content: renderPage(shown) }];
}

function renderPage(shown: Shown): string {
  return `# Conformance

Made by \`npm run generate\` from \`test/conformance/suite\`: change that, not this page.

${RULES.length} tests hold a service against the upstream's interface: one for each numbered rule, table row and error code
that an answer can show. They speak HTTP only. Without further ado they run against sandboxes that
they start, once in the recorded shape of quotes and once with the interface's members alone:

<!-- syntax only: two minutes of tests -->
\`\`\`sh
npx vitest run test/conformance/interface.test.ts
\`\`\`

and against any other service when its address is given. This requests quotes and makes vaults there; nothing is signed
unless the material names a \`funder\`.

<!-- syntax only: a service of the reader -->
\`\`\`sh
CONFORMANCE_BASE_URL=https://api.example.com CONFORMANCE_API_KEY=… npx vitest run test/conformance/interface.test.ts
\`\`\`

| Variable | Meaning |
|---|---|
| \`CONFORMANCE_BASE_URL\` | address of the service, without \`/v1\` |
| \`CONFORMANCE_API_KEY\` | key for \`x-api-key\` |
| \`CONFORMANCE_QUOTES_URL\` | address of the open quoting service |
| \`CONFORMANCE_MATERIAL\` | a JSON file with what the suite cannot find out by itself, see below |

A test that needs what was not given is skipped, and its name has what it needs. Faults of a service can be brought about
in a sandbox alone.

\`test/long/broken.test.ts\` runs every test twice through a proxy: once as it is, where it has to pass, and once with
requests or answers rewritten so that its rule is broken, where it has to fail.

A test passes only when what it is about was shown. **Shown** counts how often the sandboxes did: for a row of a table, how
many records had the member (a list of words has each of them); else, how many answers were checked. These numbers are
part of the test: \`CONFORMANCE_SHOWN=write\` writes them anew.

## Material

| Member | Meaning |
|---|---|
${materialRows().join('\n')}

Without a \`route\`, 100 USDC from Base to Optimism are quoted.

## Points that the interface leaves open

The interface does not show them. The daemon has a setting or a tolerant default for each, and the sandbox one behaviour.

${pointTable(OPEN_POINTS)}

## Points seen at a deployment

Recorded responses and public clients of a deployment differ from the interface in these points, or show more. Both must work.

${pointTable(SEEN_POINTS)}

## From rule to test

${Object.entries(OUTLINE)
  .map(([section, places]) => sectionTable({ section, places, shown }))
  .join('\n\n')}
`;
}

function pointTable(points: readonly Point[]): string {
  const rows = points.map(({ point, daemon, sandbox }) => {
    const files = [...new Set([daemon.file, sandbox.file])].map((file) => `\`${file}\``);
    return `| ${[point, daemon.does, sandbox.does].map(cell).join(' | ')} | ${files.join(', ')} |`;
  });
  return ['| Point | Daemon | Sandbox | Shown by |', '|---|---|---|---|', ...rows].join('\n');
}

function materialRows(): string[] {
  return Object.entries(materialSchema.shape).map(
    ([name, schema]) => `| \`${name}\` | ${cell(schema.description ?? '')} |`,
  );
}

function sectionTable({
  section,
  places,
  shown,
}: {
  section: string;
  places: readonly string[];
  shown: Shown;
}): string {
  const rows = places.flatMap((place) => [
    ...RULES.filter(({ id }) => placeOf(id) === place).map((rule) =>
      row(place, cell(nameOf(rule)), `${shown[rule.id] ?? 0} | ${needsOf(rule)}`),
    ),
    ...UNOBSERVABLE.filter(({ id }) => placeOf(id) === place).map(({ id, reason }) =>
      row(cell(id), `not observable: ${cell(reason)}`, '– | '),
    ),
  ]);
  return `### ${section}\n\n| Rule | Test | Shown | Needs |\n|---|---|---|---|\n${rows.join('\n')}`;
}

function row(place: string, test: string, rest: string): string {
  return `| ${cell(place)} | ${test} | ${rest} |`;
}

function needsOf({ needs = [], stage }: Rule): string {
  const fault = typeof stage === 'object' ? [`a service that answers \`${stage.failing}\``] : [];
  return [...fault, ...needs.map((need) => `\`${need}\``)].join(', ');
}

/** Escapes the markup in a cell of a table. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');
}
