import { z } from 'zod';
import { mapping } from '../fields/fields.ts';

/** The severities of log lines, the least first. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** As JSON, or as lines for people. */
export const LOG_FORMATS = ['json', 'pretty'] as const;

/** The `log` section. */
export const logSchema = mapping({
  level: z
    .enum(LOG_LEVELS, { error: LOG_LEVELS.map((level) => `"${level}"`).join(', ') })
    .prefault('info')
    .meta({ description: 'The least severe line to print; `--log-level` goes before it.' }),
  format: z.enum(LOG_FORMATS, { error: '"json" or "pretty"' }).optional().meta({
    description:
      'JSON, or lines for people; `--log-format` goes before it. Left out: `pretty` on a terminal, else `json`.',
  }),
}).meta({ description: 'What the log says, and how it looks.' });

/** How the daemon logs. `format` null: lines for people where they go to a terminal, else JSON. */
export type LogConfig = {
  level: (typeof LOG_LEVELS)[number];
  format: (typeof LOG_FORMATS)[number] | null;
};

/** The section as the rest of the program sees it. */
export function buildLog({ level, format }: z.output<typeof logSchema>): LogConfig {
  return { level, format: format ?? null };
}
