import { z } from 'zod';
import { durationField, mapping, textField } from '../fields/fields.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export const LOG_FORMATS = ['json', 'pretty'] as const;

export const logSchema = mapping({
  level: z
    .enum(LOG_LEVELS, { error: LOG_LEVELS.map((level) => `"${level}"`).join(', ') })
    .prefault('info')
    .meta({ description: 'The least severe line to print; `--log-level` goes before it.' }),
  format: z.enum(LOG_FORMATS, { error: '"json" or "pretty"' }).optional().meta({
    description:
      'JSON, or lines for people; `--log-format` goes before it. Left out: `pretty` on a terminal, else `json`.',
  }),
}).meta({ description: 'The level and the format of the log.' });

/** Log settings of the daemon. `format` null: lines for people on a terminal, else JSON. */
export type LogConfig = {
  level: (typeof LOG_LEVELS)[number];
  format: (typeof LOG_FORMATS)[number] | null;
};

/** Builds the log settings from the parsed section. */
export function buildLog({ level, format }: z.output<typeof logSchema>): LogConfig {
  return { level, format: format ?? null };
}

/** `watch`: changed files are applied by themselves; `manual`: on request only. */
const RELOAD_MODES = ['watch', 'manual'] as const;

/** States of the config file against the running config (see daemon/reloads.ts). */
export const FILE_STATES = ['running', 'changed', 'held', 'refused'] as const;

export const REMOVED_KINDS = ['wallets', 'subjects', 'receivers'] as const;

export type RemovedKind = (typeof REMOVED_KINDS)[number];

const SHARE_EXPECTED = 'a share from 0% to 100%, like 20%';

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

/** Reload settings of the daemon. `confirmAfter` is a share, 0 to 1. */
export type ReloadConfig = { mode: (typeof RELOAD_MODES)[number]; confirmAfter: number };

export const removalSchema = mapping({
  graceSpan: durationField({ min: '0s', max: '3650d' }).prefault('24h').meta({
    description:
      'How long a wallet, a subscription or anything else that left `subscriptions` is suspended before it is removed: it is polled with spare budget, its events wait, and are delivered with `data.suspended: true` when it comes back. `0s`: it is removed at once.',
    label: 'duration',
  }),
}).meta({ description: 'What becomes of what leaves the config.' });

/** Time for which subjects and receivers removed from the config stay suspended. */
export type RemovalConfig = { graceSpanMs: number };

/** Builds the removal settings from the parsed section. */
export function buildRemoval({ graceSpan }: z.output<typeof removalSchema>): RemovalConfig {
  return { graceSpanMs: graceSpan };
}
