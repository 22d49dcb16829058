import { z } from 'zod';
import { CONFIG_STATE, configStateOf, reloadConfig } from '../../../operations/config-state.ts';
import { defineRoute, NO_INPUT } from '../route.ts';

const WITHIN_MS = 20_000;

export const readConfig = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/config',
  operation: 'readConfig',
  group: 'config',
  summary: 'See which config runs, what its file is to it, and what came of the last reload',
  scope: 'read',
  answers: { 200: { description: 'Its state.', schema: CONFIG_STATE } },
  handle: async (_input, { deps }) => ({ status: 200, body: configStateOf(deps().control) }),
});

const DIGEST_EXPECTED = 'the digest of a file that is held: 32 hex digits';

export const reload = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/reload',
  operation: 'reloadConfig',
  group: 'config',
  summary: 'Read the config files now, and apply them',
  description:
    'All of it, or nothing: where it is refused, `detail` has a line per problem, and the config before it goes on. A file that would remove much (`reload.confirmAfter`) is held: `removal` lists what would go, and its `digest` as `confirm` applies exactly this file, in each process that has it.',
  scope: 'admin',
  timeoutMs: WITHIN_MS + 5_000,
  query: z.strictObject({
    confirm: z
      .string({ error: DIGEST_EXPECTED })
      .regex(/^[0-9a-f]{32}$/, { error: DIGEST_EXPECTED })
      .optional()
      .describe('The `removal.digest` of the file that is held.'),
  }),
  answers: {
    200: { description: 'It is applied; `lastReload.changes` lists what is new.', schema: CONFIG_STATE },
    202: {
      description:
        'It is not applied yet: with `state` `held` it waits for its confirmation. Otherwise it is still being applied, and `GET /config` reports the result.',
      schema: CONFIG_STATE,
    },
  },
  problems: { 409: 'It was refused, or `confirm` is not the digest of the file as it is now.' },
  handle: async ({ query: { confirm } }, { deps }) => {
    const { control } = deps();
    const state = await reloadConfig(control, { confirm, withinMs: WITHIN_MS });
    if (state === null) return { status: 202, body: configStateOf(control) };
    return { status: state.state === 'held' ? 202 : 200, body: state };
  },
});
