import { dirname, resolve } from 'node:path';
import { Command } from 'commander';
import { readConfigText } from '../config/file/load.ts';
import { readSource } from '../config/file/source.ts';
import type { JsonObject } from '../domain/json.ts';
import { BadSettingError } from '../exit.ts';
import { addOneReceiver, removeOneReceiver, rotateOneSecret } from '../server/api/routes/added-receivers.ts';
import { clientOf, type DaemonOptions, print, textOf, withDaemon } from './daemon.ts';
import { utcTimeOfIso } from './table.ts';

/** What makes, removes and rotates receivers beside those of the config. */
export function addedReceiverCommands(): Command[] {
  const add = withDaemon(
    new Command('add')
      .description(
        'Make a receiver beside those of the config. Its secrets come from a file, never from arguments.',
      )
      .argument('<file>', 'YAML or JSON as an item of `receivers`, with ${VAR} read here; - reads stdin'),
  ).action(async (file: string, options: DaemonOptions) => {
    const definition = await readDefinition(file);
    const { body, raw } = await (await clientOf(options)).ask(addOneReceiver, { body: definition });
    print(options, { raw, text: () => `${body.name} gets events from now on` });
  });
  const remove = withDaemon(
    new Command('remove')
      .description('Remove a receiver that was made by add.')
      .argument('<name>', 'the receiver'),
  ).action(async (name: string, options: DaemonOptions) => {
    const { raw } = await (await clientOf(options)).ask(removeOneReceiver, { params: { name } });
    print(options, { raw, text: () => `${name} gets nothing more` });
  });
  const rotate = withDaemon(
    new Command('rotate')
      .description('Have a receiver that was made by add sign with a new secret, and print that once.')
      .argument('<name>', 'the receiver')
      .option('--overlap <span>', 'how long the secret before it signs as well (default: 1d)'),
  ).action(async (name: string, options: DaemonOptions & { overlap?: string }) => {
    const { body, raw } = await (await clientOf(options)).ask(rotateOneSecret, {
      params: { name },
      body: { overlap: options.overlap },
    });
    const { secret, until } = body;
    print(options, {
      raw,
      text: () =>
        `${secret}\n${name} signs with it from now on, and with those before it until ${utcTimeOfIso(until)}`,
    });
  });
  return [add, remove, rotate];
}

const EXPECTED = 'a receiver as in the config, in YAML or JSON';

/** A receiver as it stands in a config. What is wrong with it beyond its variables, the daemon says. */
async function readDefinition(file: string): Promise<JsonObject> {
  const text =
    file === '-' ? await textOf(process.stdin) : await readConfigText(file, { expected: EXPECTED });
  const folder = file === '-' ? process.cwd() : dirname(resolve(file));
  const { tree, problems } = readSource(text, { env: process.env, folder });
  if (tree !== null && problems.length === 0) return tree;
  const [problem] = problems;
  throw new BadSettingError(`${file}: ${problem?.message ?? `found no mapping, expected ${EXPECTED}`}`);
}
