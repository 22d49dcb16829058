import { CONFIG_STATE, configStateOf, reloadConfig } from '../../../operations/config-state.ts';
import { defineRoute, NO_INPUT } from '../route.ts';

/** How long is waited for a reload. */
const WITHIN_MS = 20_000;

/** The config that runs. */
export const readConfig = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/config',
  operation: 'readConfig',
  group: 'config',
  summary: 'See which config runs, and what came of the last reload',
  scope: 'read',
  answers: { 200: { description: 'Its state.', schema: CONFIG_STATE } },
  handle: async (_input, { parts }) => ({ status: 200, body: configStateOf(parts().control) }),
});

/** Has the config read again. */
export const reload = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/reload',
  operation: 'reloadConfig',
  group: 'config',
  summary: 'Read the config files now, and apply them',
  description:
    'All of it, or nothing: where it is refused, `detail` has a line per problem, and the config before it goes on.',
  scope: 'admin',
  timeoutMs: WITHIN_MS + 5_000,
  answers: {
    200: { description: 'It is applied; `lastReload.changes` says what is new.', schema: CONFIG_STATE },
    202: {
      description: 'It is still being applied: `GET /config` says what came of it.',
      schema: CONFIG_STATE,
    },
  },
  problems: { 409: 'It was refused.' },
  handle: async (_input, { parts }) => {
    const { control } = parts();
    const state = await reloadConfig(control, { withinMs: WITHIN_MS });
    return state === null ? { status: 202, body: configStateOf(control) } : { status: 200, body: state };
  },
});
