import { z } from 'zod';
import { durationField, mapping, textField } from '../fields/fields.ts';

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

/** True when changed files are applied by themselves, or on request only. */
const RELOAD_MODES = ['watch', 'manual'] as const;

/** What the config file is to the config that runs (see daemon/reloads.ts). */
export const FILE_STATES = ['running', 'changed', 'held', 'refused'] as const;

/** What a reload removes, by what it is counted by: each kind for itself. */
export const REMOVED_KINDS = ['wallets', 'subjects', 'receivers'] as const;

export type RemovedKind = (typeof REMOVED_KINDS)[number];

const SHARE_EXPECTED = 'a share from 0% to 100%, like 20%';

/** The `reload` section. */
export const reloadSchema = mapping({
  mode: z
    .enum(RELOAD_MODES, { error: RELOAD_MODES.map((mode) => `"${mode}"`).join(' or ') })
    .prefault('watch')
    .meta({
      description:
        '`watch`: changed files are applied within seconds. `manual`: they are logged, and applied by `intentwatch reload` or SIGHUP only.',
    }),
  confirmAfter: textField({ pattern: /^(100|\d{1,2}(\.\d{1,3})?)%$/, expected: SHARE_EXPECTED })
    .transform((text) => Number(text.slice(0, -1)) / 100)
    .prefault('20%')
    .meta({
      description:
        'A reload that would remove more than this share of the wallets, of the other named subjects or of the receivers, and at least 3 of them, is held until `intentwatch reload --confirm`. `100%`: none is.',
      label: 'share',
    }),
}).meta({
  description: 'When a changed config is applied.',
  example: [{ mode: 'watch', confirmAfter: '20%' }],
});

/** How the daemon reloads. `confirmAfter` is a share, 0 to 1. */
export type ReloadConfig = { mode: (typeof RELOAD_MODES)[number]; confirmAfter: number };

/** The `removal` section. */
export const removalSchema = mapping({
  graceSpan: durationField({ min: '0s', max: '3650d' }).prefault('24h').meta({
    description:
      'How long a wallet, a subscription or anything else that left `subscriptions` is suspended before it is removed: it is polled with spare budget, its events wait, and are delivered with `data.suspended: true` when it comes back. `0s`: it is removed at once.',
    label: 'duration',
  }),
}).meta({ description: 'What becomes of what leaves the config.' });

/** The time that what leaves the config is suspended. */
export type RemovalConfig = { graceSpanMs: number };

/** The section as the rest of the program sees it. */
export function buildRemoval({ graceSpan }: z.output<typeof removalSchema>): RemovalConfig {
  return { graceSpanMs: graceSpan };
}
