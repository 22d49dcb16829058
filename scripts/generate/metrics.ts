import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { DEFINITIONS, type Definition, type LabelValues } from '../../src/metrics/definitions.ts';

const RULES = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          for: z.string().optional(),
          labels: z.object({ severity: z.string() }),
          annotations: z.object({ summary: z.string(), description: z.string() }),
        }),
      ),
    }),
  ),
});

type Alert = z.infer<typeof RULES>['groups'][number]['rules'][number];

/** The page of metrics and alerts. Paths are relative to the repository. */
export async function generateMetricsFiles(): Promise<{ path: string; content: string }[]> {
  const rules = await readFile(new URL('../../config/prometheus/rules.yml', import.meta.url), 'utf8');
  const alerts = RULES.parse(parse(rules)).groups.flatMap((group) => group.rules);
  return [{ path: 'docs/metrics.md', content: renderPage(Object.values(DEFINITIONS), alerts) }];
}

function renderPage(metrics: readonly Definition[], alerts: readonly Alert[]): string {
  return `# Metrics

Made by \`npm run generate\` from \`src/metrics/definitions.ts\` and \`config/prometheus/rules.yml\`: change those, not this page.

\`GET /metrics\` gives them in the text format of Prometheus, without a token:

    curl http://127.0.0.1:9464/metrics

## Set it up

1. Copy the job of \`config/prometheus/scrape.yml\` into your \`prometheus.yml\`, with one target per process. The alerts expect the job to be called \`intentwatch\`.
2. Copy \`config/prometheus/rules.yml\` beside it and name it under \`rule_files\`.
3. In Grafana, import \`config/grafana/intentwatch.json\` (Dashboards, New, Import) and choose your Prometheus.

## What holds for all of them

- Times are in seconds. Counters end in \`_total\` and begin at 0 with each process.
- Labels come from closed sets, and their series exist from the start. A status or event type that cannot be foreseen is counted as \`other\`, a receiver that is not in the config as \`(removed)\`.
- Gauges marked *shared* are read from Redis and say the same in every process: take \`max by (…)\`, not \`sum\`. They are read at most once per 2 s. One that cannot be read within 0.8 s is absent from the answer, and counted in \`intentwatch_scrape_errors_total\`.
- The usual metrics of a Node process (\`process_*\`, \`nodejs_*\`) come along.

## Metrics

| Name | Type | Labels | Meaning |
|---|---|---|---|
${metrics.map(metricRow).join('\n')}

## Label values

| Label | Of | Values |
|---|---|---|
${labelRows(metrics).join('\n')}

## Buckets

| Histogram | Upper bounds, in the unit of its name |
|---|---|
${metrics.flatMap(bucketRow).join('\n')}

## Alerts

[operations.md](operations.md) says what to do about each.

| Alert | Severity | After | What it says | What it means |
|---|---|---|---|---|
${alerts.map(alertRow).join('\n')}
`;
}

function metricRow({ name, type, labels, help, source }: Definition): string {
  const kind = source === undefined ? type : `${type}, shared`;
  const labelNames = Object.keys(labels).map((label) => `\`${label}\``);
  return `| \`${name}\` | ${kind} | ${labelNames.join(', ')} | ${cell(help)} |`;
}

/** One row per label and set of values, with the metrics that have it so. */
function labelRows(metrics: readonly Definition[]): string[] {
  const rows = new Map<string, { label: string; values: string; names: string[] }>();
  for (const { name, labels } of metrics) {
    for (const [label, set] of Object.entries(labels)) {
      const values = valuesOf(set);
      const row = rows.get(`${label} ${values}`) ?? { label, values, names: [] };
      row.names.push(`\`${name.replace('intentwatch_', '')}\``);
      rows.set(`${label} ${values}`, row);
    }
  }
  return [...rows.values()].map(
    ({ label, values, names }) => `| \`${label}\` | ${names.join(', ')} | ${values} |`,
  );
}

function valuesOf(set: LabelValues): string {
  switch (set) {
    case 'one':
      return 'what holds for this process or receiver';
    case 'receivers':
      return 'names of receivers';
    case 'routes':
      return 'names of routes';
    case 'learned':
      return 'source and destination chain, as `8453:10`; `*` for any; `other`';
    case 'queues':
      return '`status`, `gateway`, `quotes`, `partner-quotes`, and `deliver-` with the name of each receiver';
    default:
      return set.map((word) => `\`${word}\``).join(', ');
  }
}

function bucketRow({ name, buckets }: Definition): string[] {
  return buckets === undefined ? [] : [`| \`${name}\` | ${buckets.join(', ')} |`];
}

function alertRow({ alert, labels, for: after, annotations }: Alert): string {
  const { summary, description } = annotations;
  const name = `[\`${alert}\`](operations.md#${alert.toLowerCase()})`;
  return `| ${name} | ${labels.severity} | ${after ?? 'at once'} | ${cell(spoken(summary))} | ${cell(description)} |`;
}

/** A summary's template as a reader says it: the label's name in place of its value. */
function spoken(summary: string): string {
  return summary.replace(/\{\{\s*\$(?:labels\.)?(\w+)[^}]*\}\}/g, '*$1*');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
