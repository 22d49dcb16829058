import { InvalidArgumentError } from 'commander';
import { MOMENT_EXPECTED, parseMoment } from '../operations/moment.ts';

/** Reads a moment from the command line; the daemon reads it by its own clock. */
export function moment(text: string): string {
  if (parseMoment(text) === null) throw new InvalidArgumentError(`expected ${MOMENT_EXPECTED}`);
  return text;
}
