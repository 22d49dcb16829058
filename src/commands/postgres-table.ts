import { Command, InvalidArgumentError } from 'commander';
import { DEFAULT_TABLE, TABLE_NAME } from '../config/sections/postgres-receiver.ts';
import { tableDefinition } from '../notifiers/postgres/table.ts';

/** `postgres-table`: prints what makes the table of a receiver with `type: postgres`. */
export function postgresTableCommand(): Command {
  return new Command('postgres-table')
    .description('Print the SQL that makes the table of a receiver with `type: postgres`.')
    .option('--table <name>', 'its name, with a schema or without', readName, DEFAULT_TABLE)
    .action(({ table }: { table: string }) => void process.stdout.write(tableDefinition(table)));
}

function readName(text: string): string {
  if (TABLE_NAME.test(text)) return text;
  throw new InvalidArgumentError(
    'expected letters, digits, _ and $, like intentwatch_events or audit.events',
  );
}
