import { z } from 'zod';
import { mapping, textField } from '../fields/fields.ts';

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
