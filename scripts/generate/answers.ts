import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';

const OUTCOMES = resolve(import.meta.dirname, '../../test/support/answers.json');

/** Generates the page about answers that differ from the interface. Paths are relative to the repository. */
export async function generateAnswerFiles(): Promise<{ path: string; content: string }[]> {
  const schema = z.record(z.string(), z.record(z.string(), z.string()));
  const outcomes = schema.parse(JSON.parse(await readFile(OUTCOMES, 'utf8')));
  return [{ path: 'docs/answers.md', content: renderPage(outcomes) }];
}

function renderPage(outcomes: Record<string, Record<string, string>>): string {
  const sections = Object.entries(outcomes).map(([endpoint, byCase]) => section(endpoint, byCase));
  return `# Responses that differ from the interface

Made by \`npm run generate\` from what \`test/integration/answers.test.ts\` saw: a running daemon gets each of these answers,
right but for one member, and the test holds it to this page. No such answer is passed over in silence, and none is
mistaken for a refused key.

| What becomes of it | Meaning |
|---|---|
| an event, such as \`intent.filled\` | the answer counts |
| an event, without members | these members are not used, are stored as they came, and counted in \`intentwatch_records_unreadable_total\`; the rest counts |
| the record is skipped | one record of a page cannot be read: counted in the same metric, logged as \`record.unreadable\`; the others count |
| malformed answer | nothing of it is stored: counted in \`intentwatch_upstream_requests_total\` with \`outcome="malformed"\`, logged as \`poll.failed\`, and requested again after a backoff |
| no transfers | an empty page, as a wallet without transfers has it |

| A member that is | For instance |
|---|---|
| missing, null, empty | left out, \`null\`, or \`""\`, \`[]\`, \`{}\` |
| of other form | an id without or with a prefix, digits as a number, a number as text, one element for a list |
| in other case | hex, words and ids in upper case |
| of other type | an object for text, text for a list |
| extra | a member beside it, or inside it, that the interface does not name |

${sections.join('\n\n')}

## Chains and tokens

The interface shows no shape for \`GET /v1/chains\` and \`GET /v1/tokens\`, so there is no right answer to differ from. No event
hangs on them. An entry without \`chainId\` (a token's also without \`address\`) is skipped; a \`name\`, \`symbol\`,
\`decimals\` or \`quoteSigner\` that cannot be read is not known. A list that cannot be read is logged as
\`directory.not_read\`, and what was known goes on to be used.
`;
}

function section(endpoint: string, byCase: Record<string, string>): string {
  const members = Map.groupBy(Object.entries(byCase), ([name]) => name.split(', ')[0] ?? '');
  const rows = [...members].map(([member, cases]) => {
    const deviations = Map.groupBy(cases, ([, outcome]) => outcome);
    const reported = [...deviations].map(
      ([outcome, alike]) => `${outcome} (${alike.map(([name]) => name.split(', ')[1]).join(', ')})`,
    );
    return `| \`${member}\` | ${reported.join('; ')} |`;
  });
  return `## ${endpoint}\n\n${Object.keys(byCase).length} answers.\n\n| Member | What becomes of it |\n|---|---|\n${rows.join('\n')}`;
}
