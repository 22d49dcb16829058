import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import {
  type Definition,
  type LabelValues,
  MOST_PER_RECEIVER,
  MOST_PER_ROUTE,
} from '../../src/metrics/definition.ts';
import { DEFINITIONS } from '../../src/metrics/instruments.ts';

const RULES = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.union([
          z.object({
            alert: z.string(),
            expr: z.string(),
            for: z.string().optional(),
            labels: z.object({ severity: z.string() }),
            annotations: z.object({ summary: z.string(), description: z.string() }),
          }),
          z.object({ record: z.string(), expr: z.string() }),
        ]),
      ),
    }),
  ),
});

type Rule = z.infer<typeof RULES>['groups'][number]['rules'][number];
type Alert = Extract<Rule, { alert: string }>;

/** Generates the page of metrics and alerts, and the rules for the mixin. Paths are relative to the repository. */
export async function generateMetricsFiles(): Promise<{ path: string; content: string }[]> {
  const rules = await readFile(new URL('../../config/prometheus/rules.yml', import.meta.url), 'utf8');
  const content: unknown = parse(rules);
  const all = RULES.parse(content).groups.flatMap((group) => group.rules);
  return [
    { path: 'docs/metrics.md', content: renderPage(Object.values(DEFINITIONS), all) },
    // Not every jsonnet reads YAML whose texts have several lines.
    { path: 'config/mixin/rules.json', content: `${JSON.stringify(content, null, 2)}\n` },
  ];
}

function renderPage(metrics: readonly Definition[], rules: readonly Rule[]): string {
  const alerts = rules.filter((rule) => 'alert' in rule);
  const records = rules.filter((rule) => 'record' in rule);
  return `# Metrics

Made by \`npm run generate\` from \`src/metrics/definitions\` and \`config/prometheus/rules.yml\`: change those, not this page.

\`GET /metrics\` gives them in the text format of Prometheus, without a token:

\`\`\`sh
curl http://127.0.0.1:9464/metrics
\`\`\`

Who requests OpenMetrics gets that, as Prometheus does by itself. It has exemplars: beside a bucket is the
\`event_id\` of one event that fell into it, and \`GET /api/v1/events/evt_…?receiver=backend\` shows that, as this
receiver gets it. Prometheus stores them with \`--enable-feature=exemplar-storage\`.

## Set it up

1. Copy the job of \`config/prometheus/scrape.yml\` into your \`prometheus.yml\`, with one target per process. The alerts expect the job to be called \`intentwatch\`.
2. Copy \`config/prometheus/rules.yml\` beside it and name it under \`rule_files\`.
3. Where your job has another name, or your docs an address, make both files with [the mixin](#with-another-job) instead.
4. In Grafana, import \`config/grafana/intentwatch.json\` (Dashboards, New, Import) and choose your Prometheus.

## What holds for all of them

- Times are in seconds. Counters end in \`_total\` and begin at 0 with each process.
- Labels come from closed sets, and their series exist from the start. A status or event type that cannot be foreseen is counted as \`other\`, a receiver that is not in the config as \`(removed)\`.
- Gauges marked *shared* are read from Redis and are the same in every process: take \`max by (…)\`, not \`sum\`. They are read at most once per 2 s. One that cannot be read within 0.8 s is absent from the answer, and counted in \`intentwatch_scrape_errors_total\`.
- Histograms and counters count what this process saw. A restart begins at 0 and counts nothing twice. What is *shared* is stored in Redis and goes on.
- A receiver has at most ${MOST_PER_RECEIVER} series, a pair of chains at most ${MOST_PER_ROUTE} (with one token; one more for each outcome and further token). 50 pairs of chains and 10 tokens get series of their own; all others together count as one more. A test holds it to that.
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

## Money and time

| Question | Query |
|---|---|
| What is stuck now, by token? | \`sum by (token) (max by (state, token) (intentwatch_transfers_open_value_tokens{state=~"expired\\|failed\\|refundable"}))\` |
| How much went out today on each route? | \`sum by (route, token) (increase(intentwatch_transfer_volume_tokens_total{outcome="filled"}[1d]))\` |
| How long do 19 of 20 fills take? | \`job_route:intentwatch_transfer_fill_seconds:p95_1h\` |
| When does my backend know of 19 of 20 events? | \`job_receiver:intentwatch_delivery_delay_seconds:p95_15m\` |

The values of open transfers are what the source transactions sent. Only single transfers count, as jobs, quotes and
vaults name the transfer that they lead to. One that is not polled any more does not count.

## Rules

Recorded by \`config/prometheus/rules.yml\`, for dashboards and alerts of your own.

| Series | Query |
|---|---|
${records.map(({ record, expr }) => `| \`${record}\` | \`${cell(expr.trim())}\` |`).join('\n')}

## With another job

\`config/mixin\` is the usual form for [jsonnet](https://jsonnet.org): it has \`prometheusAlerts\`, \`prometheusRules\` and
\`grafanaDashboards\`, with the job's selector and the address of the runbook to choose.

\`\`\`jsonnet
(import 'config/mixin/mixin.libsonnet') + {
  _config+:: { selector: 'job="transfers"', runbookUrl: 'https://wiki.example.com/intentwatch#%s' },
}
\`\`\`

Saved as \`mine.jsonnet\`, it makes two files for \`rule_files\`:

<!-- syntax only: jsonnet -->
\`\`\`sh
jsonnet -S -e "std.manifestYamlDoc((import 'mine.jsonnet').prometheusRules)" > recording.yml
jsonnet -S -e "std.manifestYamlDoc((import 'mine.jsonnet').prometheusAlerts)" > alerts.yml
\`\`\`

## Alerts

[operations.md](operations.md) describes what to do about each.

Symptoms come first, then what may be their cause. Each has a \`runbook_url\`.

| Alert | Severity | After | Summary | Meaning |
|---|---|---|---|---|
${alerts.map(alertRow).join('\n')}
`;
}

function metricRow({ name, type, labels, help, source }: Definition): string {
  const kind = source === undefined ? type : `${type}, shared`;
  const labelNames = Object.keys(labels).map((label) => `\`${label}\``);
  return `| \`${name}\` | ${kind} | ${labelNames.join(', ')} | ${cell(help)} |`;
}

/** One row per label and set of values, with its metrics. */
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
    case 'chains':
      return 'ids of chains with RPC endpoints';
    case 'endpoints':
      return 'names of RPC endpoints';
    case 'learned':
      return 'source and destination chain, as `8453:10`; `*` for any; `other`';
    case 'tokens':
      return 'symbols of tokens; `other`';
    case 'queues':
      return '`status`, `gateway`, `quotes`, `partner-quotes`, `open-status`, and `deliver-` with the name of each receiver';
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
  return `| ${name} | ${labels.severity} | ${after ?? 'at once'} | ${cell(summary)} | ${cell(spoken(description))} |`;
}

/** A description's template in prose: the label's name in place of its value. */
function spoken(description: string): string {
  return description
    .replace(/\{\{ range .*?\{\{ end \}\}/g, ' *value of each token*')
    .replace(/\{\{\s*\$(?:labels\.)?(\w+)[^}]*\}\}/g, '*$1*');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
