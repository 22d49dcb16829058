import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { readConfigText } from '../config/file/load.ts';
import { readSource } from '../config/file/source.ts';
import type { JsonObject } from '../domain/json.ts';
import { BadSettingError, EXIT } from '../exit.ts';
import type { ReceiverView } from '../operations/receivers.ts';
import { addOneReceiver, removeOneReceiver, rotateOneSecret } from '../server/api/routes/added-receivers.ts';
import {
  listOfReceivers,
  RECEIVER_ACTIONS,
  readOneReceiver,
  testOneReceiver,
} from '../server/api/routes/receivers.ts';
import { clientOf, type DaemonOptions, print, textOf, withDaemon } from './daemon.ts';
import { screenOf, table, utcTimeOfIso } from './table.ts';

/** Commands that make, remove and rotate receivers beside those of the config. */
export function addedReceiverCommands(): Command[] {
  const add = withDaemon(
    new Command('add')
      .description(
        'Make a receiver beside those of the config. Its secrets come from a file, never from arguments.',
      )
      .argument('<file>', 'YAML or JSON as an item of `receivers`, with ${VAR} read here; - reads stdin'),
  ).action(async (file: string, options: DaemonOptions) => {
    const definition = await readDefinition(file);
    const { body, raw } = await (await clientOf(options)).call(addOneReceiver, { body: definition });
    print(options, {
      raw,
      text: () =>
        `${body.name} gets the events of subjects that are tracked for it: intentwatch track --to ${body.name} …`,
    });
  });
  const remove = withDaemon(
    new Command('remove')
      .description('Remove a receiver that was made by add.')
      .argument('<name>', 'the receiver'),
  ).action(async (name: string, options: DaemonOptions) => {
    const { raw } = await (await clientOf(options)).call(removeOneReceiver, { params: { name } });
    print(options, { raw, text: () => `${name} gets nothing more` });
  });
  const rotate = withDaemon(
    new Command('rotate')
      .description('Have a receiver that was made by add sign with a new secret, and print that once.')
      .argument('<name>', 'the receiver')
      .option('--overlap <span>', 'how long the secret before it signs as well (default: 1d)'),
  ).action(async (name: string, options: DaemonOptions & { overlap?: string }) => {
    const { body, raw } = await (await clientOf(options)).call(rotateOneSecret, {
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

/** Reads a receiver as a config defines it. Apart from its variables, the daemon validates it. */
async function readDefinition(file: string): Promise<JsonObject> {
  const text =
    file === '-' ? await textOf(process.stdin) : await readConfigText(file, { expected: EXPECTED });
  const folder = file === '-' ? process.cwd() : dirname(resolve(file));
  const { tree, problems } = readSource(text, { env: process.env, folder });
  if (tree !== null && problems.length === 0) return tree;
  const [problem] = problems;
  throw new BadSettingError(`${file}: ${problem?.message ?? `found no mapping, expected ${EXPECTED}`}`);
}

const ENABLING_MS = 10_000;
const CHECK_EVERY_MS = 200;

/** `receivers`: prints the state of every receiver, and acts on one. */
export function receiversCommand(): Command {
  const command = new Command('receivers')
    .description('Show the receivers, and act on one.')
    .addCommand(
      withDaemon(
        new Command('ls').description(
          'List them: state, backlog, oldest undelivered, next attempt, dead letters, last success, last error.',
        ),
      ).action(list),
      { isDefault: true },
    )
    .addCommand(named('show', 'Show one of them.', show))
    .addCommand(
      named('pause', 'Make no attempts until it is resumed: what is open waits.', (name, options) =>
        act('pause', name, options),
      ),
    )
    .addCommand(
      named('resume', 'Deliver to a paused receiver again, what waited first.', (name, options) =>
        act('resume', name, options),
      ),
    )
    .addCommand(
      named('disable', 'Make no more attempts, and store the events until it is enabled.', (name, options) =>
        act('disable', name, options),
      ),
    )
    .addCommand(
      named(
        'enable',
        'Deliver to a disabled receiver again: first what it missed, oldest first.',
        (name, options) => act('enable', name, options),
      ),
    )
    .addCommand(named('test', 'Have the daemon send it a signed test event, and show the answer.', test));
  for (const added of addedReceiverCommands()) command.addCommand(added);
  return command;
}

function named(
  word: string,
  description: string,
  run: (name: string, options: DaemonOptions) => Promise<void>,
): Command {
  return withDaemon(new Command(word).description(description).argument('<name>', 'the receiver')).action(
    run,
  );
}

async function list(options: DaemonOptions): Promise<void> {
  const { body, raw } = await (await clientOf(options)).call(listOfReceivers);
  const { receivers } = body;
  print(options, {
    raw,
    text: () => (receivers.length === 0 ? 'no receivers' : table([HEAD, ...receivers.map(row)], screenOf())),
  });
}

const HEAD = [
  'NAME',
  'TYPE',
  'STATE',
  'BACKLOG',
  'OLDEST',
  'NEXT ATTEMPT',
  'DEAD',
  'LAST SUCCESS',
  'LAST ERROR',
];

async function show(name: string, options: DaemonOptions): Promise<void> {
  const { body, raw } = await (await clientOf(options)).call(readOneReceiver, { params: { name } });
  print(options, { raw, text: () => table([HEAD, row(body)], { ...screenOf(), columns: 0 }) });
}

function row(receiver: ReceiverView): string[] {
  const { name, type, origin, removed, backlog, backlogIsMore, oldestUndeliveredAt, nextAttemptAt } =
    receiver;
  const { deadLetters, lastSuccessAt, lastErrorAt, lastError, leftOut } = receiver;
  return [
    name,
    origin === 'api' ? `${type}, by API` : type,
    `${describeState(receiver)}${removed ? ', not in the config' : ''}${leftOut === null ? '' : `, left out: ${leftOut}`}`,
    `${backlog}${backlogIsMore ? ' or more' : ''}`,
    utcTimeOfIso(oldestUndeliveredAt),
    utcTimeOfIso(nextAttemptAt),
    String(deadLetters),
    lastSuccessAt === null ? 'never' : utcTimeOfIso(lastSuccessAt),
    lastErrorAt === null ? 'never' : `${utcTimeOfIso(lastErrorAt)} ${lastError ?? ''}`,
  ];
}

function describeState({ state, failingSince, disabledAt, disabledBy, pausedAt }: ReceiverView): string {
  if (state === 'failing' && failingSince !== null) return `failing since ${utcTimeOfIso(failingSince)}`;
  if (state === 'paused' && pausedAt !== null) return `paused since ${utcTimeOfIso(pausedAt)}`;
  if (state !== 'disabled' || disabledAt === null) return state;
  const why = { failures: 'failures', gone: 'an answer of 410', operator: 'the operator' };
  return `disabled by ${why[disabledBy ?? 'operator']} at ${utcTimeOfIso(disabledAt)}`;
}

async function act(word: keyof typeof RECEIVER_ACTIONS, name: string, options: DaemonOptions): Promise<void> {
  const client = await clientOf(options);
  let { body, raw } = await client.call(RECEIVER_ACTIONS[word], { params: { name } });
  const endMs = performance.now() + ENABLING_MS;
  while (body.state === 'enabling' && performance.now() < endMs) {
    await sleep(CHECK_EVERY_MS);
    ({ body, raw } = await client.call(readOneReceiver, { params: { name } }));
  }
  const text = `${name}: ${describeState(body)}`;
  const owed =
    body.backlog === 0 ? '' : `, ${body.backlog}${body.backlogIsMore ? ' or more' : ''} events wait`;
  print(options, { raw, text: () => `${text}${owed}` });
}

async function test(name: string, options: DaemonOptions): Promise<void> {
  const { body, raw } = await (await clientOf(options)).call(testOneReceiver, { params: { name } });
  const { outcome, reason, answer, durationMs, event } = body;
  const rows = [
    ['OUTCOME', 'REASON', 'TOOK', 'EVENT', 'ANSWER'],
    [outcome, reason, `${durationMs} ms`, event, answer],
  ];
  print(options, { raw, text: () => table(rows, { ...screenOf(), columns: 0 }) });
  if (outcome !== 'delivered') process.exitCode = EXIT.failed;
}
